/**
 * The provider's own web search, which runs within a turn on the provider's side: how it is switched on, and what is told
 * of it. Anthropic's `web_search`, OpenAI's `web_search`, Google's grounding; each shows what it found in a way of its own.
 */
import type { LanguageModelV4ProviderTool, LanguageModelV4ToolCall, LanguageModelV4ToolResult } from '@ai-sdk/provider'
import type { AiSdkProvider } from './ai-sdk-providers.ts'
import { isJsonObject, type JsonObject, stringIn } from './json.ts'
import type { ModelDelta } from './port.ts'

/** Searches within one model call: a bound on cost. */
const MAX_USES = 8
const MAX_LISTED = 20
const MAX_LINE = 500

/** Gemini before 3 gives up all other tools when it may search, so it is not let. */
export function canSearch(provider: string, model: string): boolean {
  return (
    provider === 'anthropic' || provider === 'openai' || (provider === 'google' && /gemini-([3-9]|\d\d)/.test(model))
  )
}

export function searchTool(provider: AiSdkProvider): LanguageModelV4ProviderTool | undefined {
  switch (provider) {
    case 'anthropic':
      // The later versions need the provider's code execution beside them.
      return { type: 'provider', id: 'anthropic.web_search_20250305', name: 'web_search', args: { maxUses: MAX_USES } }
    case 'openai':
      return { type: 'provider', id: 'openai.web_search', name: 'web_search', args: {} }
    case 'google':
      return { type: 'provider', id: 'google.google_search', name: 'google_search', args: {} }
    case 'bedrock':
      return undefined
  }
}

type Told = Extract<ModelDelta, { type: 'provider_tool' }>

/** Of a search with its result; Google's say nothing a reader could use, its grounding does. */
export function tellSearch(
  call: LanguageModelV4ToolCall,
  { result, isError }: LanguageModelV4ToolResult,
  durationMs: number,
): Told | undefined {
  if (call.toolName !== 'web_search') return undefined
  const found: unknown = result
  const args = { ...parseArgs(call.input), ...actionOf(found) }
  const pages = Array.isArray(found) ? found : isJsonObject(found) && Array.isArray(found.sources) ? found.sources : []
  const output = isError ? `The search failed (${codeOf(found)}).` : listed(pages.filter(isJsonObject).map(pageOf))
  return { type: 'provider_tool', name: 'web_search', args, output, durationMs }
}

/** Told when the answer is whole: what the answer rests on is said beside it. */
export function tellGrounding(metadata: unknown): Told | undefined {
  const google = isJsonObject(metadata) ? metadata.google : undefined
  const grounding = isJsonObject(google) ? google.groundingMetadata : undefined
  if (!isJsonObject(grounding) || !Array.isArray(grounding.webSearchQueries)) return undefined
  const queries = grounding.webSearchQueries.filter((query) => typeof query === 'string')
  if (queries.length === 0) return undefined
  const chunks = Array.isArray(grounding.groundingChunks) ? grounding.groundingChunks.filter(isJsonObject) : []
  const pages = chunks.flatMap(({ web }) =>
    isJsonObject(web) ? [{ title: stringIn(web, 'title'), url: stringIn(web, 'uri') }] : [],
  )
  const args = queries.length === 1 ? { query: queries[0] } : { queries }
  return { type: 'provider_tool', name: 'web_search', args, output: listed(pages), durationMs: 0, late: true }
}

interface Page {
  readonly title: string
  readonly url: string
  readonly date?: string
}

function pageOf(page: JsonObject): Page {
  return {
    title: stringIn(page, 'title'),
    url: stringIn(page, 'url') || stringIn(page, 'name'),
    date: stringIn(page, 'pageAge'),
  }
}

function listed(pages: readonly Page[]): string {
  const shown = pages.filter(({ url }) => url !== '').slice(0, MAX_LISTED)
  if (shown.length === 0) return '[The provider searched and named no pages.]'
  const lines = shown.map(({ title, url, date }, i) =>
    [`${i + 1}. ${title || url}`, ...(title || date ? [`   ${url}${date ? ` (${date})` : ''}`] : [])]
      .map((line) => line.replace(/\s+/g, ' ').replace(/^ /, '   ').slice(0, MAX_LINE))
      .join('\n'),
  )
  return [
    `[${shown.length === 1 ? '1 result' : `${shown.length} results`}, found by the model's provider]`,
    ...lines,
  ].join('\n\n')
}

/** OpenAI says what it looked for when it has found it; a page may be opened, too. */
function actionOf(result: unknown): JsonObject {
  const action = isJsonObject(result) && isJsonObject(result.action) ? result.action : {}
  const { type: _, ...rest } = action
  return rest
}

function codeOf(result: unknown): string {
  return (isJsonObject(result) && stringIn(result, 'errorCode')) || 'for a reason its provider does not give'
}

function parseArgs(input: string): JsonObject {
  try {
    const args: unknown = JSON.parse(input)
    return isJsonObject(args) ? args : {}
  } catch {
    return {}
  }
}
