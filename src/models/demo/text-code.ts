/** Plain text and logs: what is asked of them, and the Python that finds it. */
import { imports, py } from './python.ts'
import { singular } from './words.ts'

export type TextQuery =
  | { readonly kind: 'describe' }
  | { readonly kind: 'size'; readonly unit: 'lines' | 'words' | 'characters' }
  | {
      readonly kind: 'count'
      readonly needle: string
      readonly level: string | undefined
      readonly per: 'day' | 'hour' | undefined
    }
  | { readonly kind: 'top'; readonly what: TopKind; readonly limit: number; readonly level: string | undefined }

export type TopKind = 'words' | 'addresses' | 'lines' | 'urls'

const LEVELS: Readonly<Record<string, string>> = {
  error: 'ERROR',
  warning: 'WARN|WARNING',
  warn: 'WARN|WARNING',
  fatal: 'FATAL',
  critical: 'CRITICAL',
  info: 'INFO',
  debug: 'DEBUG',
}

/** `levels` are those that the file was found to use. */
export function readTextQuery(text: string, levels: readonly string[]): TextQuery {
  const lower = text.toLowerCase()
  const levelWord = Object.keys(LEVELS).find((word) => new RegExp(`\\b${word}s?\\b`).test(lower))
  const level =
    levelWord && LEVELS[levelWord]!.split('|').some((name) => levels.includes(name)) ? LEVELS[levelWord] : undefined
  if (/\btop\b|\bmost (common|frequent|often)|\bcommonest\b|\bmost used\b/.test(lower)) {
    return { kind: 'top', what: topKind(lower), limit: limitIn(lower), level }
  }
  const quoted = /["“”`']([^"“”`'\n]+)["“”`']/.exec(text)?.[1]
  const needle = quoted ?? needleIn(lower) ?? levelWord
  const per = /\b(?:per|by|each|every) (day|hour|date)\b/.exec(lower)?.[1]
  if (needle) {
    const isLevel = levelWord !== undefined && singular(needle) === levelWord
    return {
      kind: 'count',
      needle,
      level: isLevel ? level : undefined,
      per: per === 'date' ? 'day' : (per as 'day' | 'hour' | undefined),
    }
  }
  const unit = /\b(?:how many|count|number of)\b.*\b(lines|words|characters|letters|rows|entries)\b/.exec(lower)?.[1]
  if (unit)
    return { kind: 'size', unit: unit === 'words' ? 'words' : /char|letter/.test(unit) ? 'characters' : 'lines' }
  return { kind: 'describe' }
}

function topKind(lower: string): TopKind {
  if (/\b(ips?|address(es)?|hosts?|clients?)\b/.test(lower)) return 'addresses'
  if (/\b(urls?|links?)\b/.test(lower)) return 'urls'
  return /\b(lines?|messages?|errors?|warnings?|entries)\b/.test(lower) ? 'lines' : 'words'
}

function limitIn(lower: string): number {
  const given = /\b(?:top|the|what are the) (\d{1,3})\b/.exec(lower)?.[1] ?? /\b(\d{1,3}) most\b/.exec(lower)?.[1]
  return Math.max(1, Math.min(100, given ? Number(given) : 5))
}

/** The word or words whose lines are counted. */
function needleIn(lower: string): string | undefined {
  const patterns = [
    /\b(?:contain|contains|containing|mention|mentions|mentioning|match|matches|matching|include|including|with) (?:the )?(?:word |text |string |term )?([\w.:/@-]+)/,
    /\b(?:occurrences?|instances?|mentions?) of (?:the )?(?:word )?([\w.:/@-]+)/,
    /\bhow often (?:does|is|do|did) (?:the )?(?:word )?([\w.:/@-]+)/,
    /\bhow many (?:times (?:does|is|do|did) (?:the )?(?:word )?)?([\w.:/@-]+(?: (?:failed|refused|denied|lost|reset|out))?)/,
    /\bcount (?:the |all |of )*(?:number of )?([\w.:/@-]+)/,
    /\b(?:number|count) of ([\w.:/@-]+)/,
  ]
  for (const pattern of patterns) {
    const found = pattern.exec(lower)?.[1]?.replace(/[.:]+$/, '')
    if (
      found &&
      !/^(line|word|character|letter|row|entrie|entry|the|are|is|in|of|different|unique|there|it|number)s?$/.test(found)
    )
      return found
  }
  return undefined
}

function open(file: string): string {
  return `with open(${py(file)}, encoding="utf-8-sig", errors="replace") as file:\n    lines = file.read().splitlines()\n`
}

export function textCode(file: string, query: Extract<TextQuery, { kind: 'count' | 'top' }>): string {
  return query.kind === 'count' ? countCode(file, query) : topCode(file, query)
}

function countCode(file: string, query: Extract<TextQuery, { kind: 'count' }>): string {
  const word = singular(query.needle)
  // Short words are matched whole: "ip" must not be found in "ship".
  const pattern = `(?i)${word.length <= 3 ? `\\b${literally(word)}s?\\b` : literally(word)}`
  const test = query.level ? `re.search(${py(`\\b(${query.level})\\b`)}, line)` : 'needle.search(line)'
  return `${imports('json', 're', 'collections')}

${open(file)}
needle = re.compile(${py(pattern)})
hits = [(at, line) for at, line in enumerate(lines, 1) if ${test}]
times = collections.Counter(match[1].replace("T", " ") for at, line in hits if (match := re.search(r"(\\d{4}-\\d\\d-\\d\\d${query.per === 'hour' ? '[T ]\\d\\d' : ''})", line)))
print(json.dumps({
    "lines": len(lines),
    "matching": len(hits),
    "containing": sum(bool(needle.search(line)) for line in lines),
    "occurrences": sum(len(needle.findall(line)) for line in lines),
    "samples": [[at, line.strip()[:160]] for at, line in (hits[:1] + hits[-1:] if len(hits) > 1 else hits)],
    "times": sorted(times.items())${query.per ? '' : '[:0]'},
}))
`
}

const ITEMS: Readonly<Record<TopKind, string>> = {
  words: String.raw`[word for line in chosen for word in re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", line.lower()) if word not in COMMON]`,
  addresses: String.raw`[ip for line in chosen for ip in re.findall(r"\b(?:\d{1,3}\.){3}\d{1,3}\b", line)]`,
  urls: String.raw`[url for line in chosen for url in re.findall(r"https?://[^\s\"'<>]+", line)]`,
  // Numbers and times differ from line to line; the message is what stays the same.
  lines: String.raw`[re.sub(r"\d+", "N", re.sub(r"^[\d\-:.,TZ+\[\] ]+", "", line)).strip()[:120] for line in chosen if line.strip()]`,
}

function topCode(file: string, query: Extract<TextQuery, { kind: 'top' }>): string {
  const common =
    query.what === 'words'
      ? `COMMON = set("a an the and or of to in is it that for on with as was at by be this are from but not have had has he she they we you i his her its".split())\n`
      : ''
  const chosen = query.level ? `[line for line in lines if re.search(${py(`\\b(${query.level})\\b`)}, line)]` : 'lines'
  return `${imports('json', 're', 'collections')}

${open(file)}${common}chosen = ${chosen}
items = collections.Counter(${ITEMS[query.what]})
top = sorted(items.items(), key=lambda item: (-item[1], item[0]))[:${query.limit}]
print(json.dumps({"lines": len(lines), "chosen": len(chosen), "different": len(items), "top": top}))
`
}

function literally(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&').replace(/\\\//g, '/')
}
