// Ranking of the search: titles first, synonyms, and one result for passages that say the same for both clients. Without the DOM, so
// that test/docs/search.test.ts can run it.

/** Words and phrases that mean the same. A query with one of them also finds the others. */
export const SYNONYMS = [
  ['sse', 'stream', 'streaming', 'server-sent events', 'event stream'],
  ['retry', 'retries', 'retryable', 'repeat', 'attempt', 'backoff', 'try again'],
  ['timeout', 'time-out', 'deadline', 'maxturnduration', 'deadline_exceeded', 'time limit'],
  ['rate limit', 'rate limits', 'rate_limited', '429', 'quota', 'throttling', 'too many requests'],
  ['webhook', 'webhooks', 'callback', 'notification'],
  ['idempotency', 'idempotent', 'idempotency-key', 'idempotency_key', 'exactly once', 'deduplicate'],
  ['backup', 'back-up', 'back up', 'restore', 'pg_dump'],
  ['upgrade', 'upgrading', 'migration', 'new version'],
  ['auth', 'authentication', 'api key', 'x-svc-api-key', 'sign-in', 'login', '401'],
  ['tls', 'https', 'ssl', 'certificate'],
  ['proxy', 'nginx', 'reverse proxy', 'load balancer'],
  ['cost', 'price', 'budget', 'spend', 'billing'],
  ['metrics', 'prometheus', 'monitoring', 'grafana'],
  ['traces', 'tracing', 'opentelemetry', 'otlp', 'otel'],
  ['logs', 'log', 'logging'],
  ['cluster', 'several nodes', 'high availability', 'scaling', 'multiple machines'],
  ['docker', 'container', 'image', 'compose'],
  ['cancel', 'abort', 'stop'],
  ['json schema', 'responseformat', 'structured output', 'structured answer', 'json mode'],
  ['conversation', 'previousinteractionid', 'multi-turn', 'chat history', 'session'],
  ['approval', 'approvals', 'approve', 'requireapproval', 'human in the loop'],
  ['egress', 'network', 'internet access', 'allowlist'],
  ['secret', 'credential', 'credentials', 'vault'],
  ['crash', 'recovery', 'restart', 'failover', 'fail-over'],
  ['ordering', 'order', 'sequence'],
  ['delivery', 'at least once', 'redelivery'],
  ['upload', 'input files', 'attachment'],
  ['download', 'output files', 'artifact'],
  ['ollama', 'local model', 'vllm', 'llama.cpp', 'lm studio', 'openai-compatible'],
]

const SYNONYM_BOOST = 0.4
const EXACT_HEADING = 4
const WORDS_IN_HEADING = 3
const SYNONYMS_IN_HEADING = 2
const WORDS_IN_PAGE_TITLE = 1
/** Subtracted for generated pages: at equal rank, guides come first. */
const DETAIL = 0.5
const DETAIL_PAGES = /^(?:client-|reference-|objects\.|examples\.)/
/** Subtracted for pages that few readers look for: test reports, history, and alternative spellings of paths. */
const BACKGROUND = 2.5
const BACKGROUND_PAGES = /^(?:proof|benchmarks|changelog|comparison|migrating|event-loop|console-api)\.html|BySlash$/

/** `errand.agents.create` is a word, and so are `agents.create` and each part. */
function tokenize(text) {
  const words = text.split(/[\s,;:()[\]{}<>"“”`]+/).filter(Boolean)
  return words.flatMap((word) => {
    const afterDot = word.includes('.') ? [word.slice(word.indexOf('.') + 1)] : []
    return [...new Set([word, ...afterDot, ...word.split(/[^\p{L}\p{N}]+/u)])].filter(Boolean)
  })
}

/** A query matches the whole word only: all of `agents.create`, not all texts with `agents` and `create`. */
function tokenizeQuery(text) {
  return text.split(/[\s,;:()[\]{}<>"“”`]+/).filter(Boolean)
}

/** Returns a function that searches: `(query, preferredLanguage) => results`, best first. */
export function createSearch(MiniSearch, passages) {
  const index = new MiniSearch({
    fields: ['heading', 'page', 'text', 'code'],
    storeFields: ['heading', 'page', 'text', 'group', 'language'],
    tokenize,
    searchOptions: {
      boost: { heading: 8, page: 4, code: 0.5 },
      prefix: true,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      combineWith: 'AND',
      tokenize: tokenizeQuery,
    },
  })
  index.addAll(passages)
  return (query, preferredLanguage) => {
    const alternatives = alternativesOf(query.toLowerCase().trim())
    const hits = index.search({ combineWith: 'AND', queries: alternatives.map(queryOf) })
    const ranked = hits
      .map((hit) => ({ ...hit, rank: rankOf(hit, query.toLowerCase().trim(), alternatives) }))
      .sort((a, b) => b.rank - a.rank || b.score - a.score)
    return grouped(ranked, preferredLanguage)
  }
}

/** For each word or known phrase of the query: itself, then its synonyms. */
function alternativesOf(query) {
  let rest = ` ${query} `
  const found = []
  for (const group of SYNONYMS) {
    const used = group.filter((each) => rest.includes(` ${each} `)).sort((a, b) => b.length - a.length)[0]
    if (used === undefined) continue
    rest = rest.replace(` ${used} `, '  ')
    found.push([used, ...group.filter((each) => each !== used)])
  }
  return [
    ...found,
    ...rest
      .split(/\s+/)
      .filter(Boolean)
      .map((word) => [word]),
  ]
}

function queryOf([asked, ...synonyms]) {
  const exact = { queries: [asked], combineWith: 'AND' }
  if (synonyms.length === 0) return exact
  const similar = synonyms.map((text) => ({
    queries: [text],
    combineWith: 'AND',
    prefix: false,
    fuzzy: false,
    boostTerm: () => SYNONYM_BOOST,
  }))
  return { combineWith: 'OR', queries: [exact, ...similar] }
}

function rankOf({ id, heading, page, text }, query, alternatives) {
  const isSetting = id.startsWith('configuration.html') && /[._]/.test(query) && text.toLowerCase().includes(query)
  if (isSetting) return WORDS_IN_HEADING
  const penalty = BACKGROUND_PAGES.test(id) ? BACKGROUND : DETAIL_PAGES.test(id) ? DETAIL : 0
  return titleRank(heading.toLowerCase(), page.toLowerCase(), query, alternatives) - penalty
}

function titleRank(title, page, query, alternatives) {
  if (title === query) return EXACT_HEADING
  if (alternatives.every(([asked]) => hasWords(title, asked))) return WORDS_IN_HEADING
  const similar = (text) => alternatives.every((each) => each.some((words) => hasWords(text, words)))
  if (similar(title)) return SYNONYMS_IN_HEADING
  return similar(`${page} ${title}`) ? WORDS_IN_PAGE_TITLE : 0
}

function hasWords(text, words) {
  const parts = text.split(/[^\p{L}\p{N}_.-]+/u)
  return words.split(' ').every((word) => parts.some((part) => part.startsWith(word) || part.endsWith(`.${word}`)))
}

/** One result for each group: the passage of the preferred language, with the languages of all. */
function grouped(hits, preferredLanguage) {
  const results = new Map()
  for (const hit of hits) {
    const key = hit.group ?? hit.id
    const first = results.get(key)
    if (!first) results.set(key, { ...hit, languages: hit.language ? [hit.language] : [] })
    else {
      const languages = [...first.languages, hit.language]
      const shown = hit.language === preferredLanguage ? hit : first
      results.set(key, { ...shown, languages })
    }
  }
  return [...results.values()]
}
