/** Shows a search that the model's provider ran on its side as a `web_search` step. */
import type { LanguageModelV4ToolCall, LanguageModelV4ToolResult, SharedV4ProviderMetadata } from '@ai-sdk/provider'
import { isJsonObject, type JsonObject, stringIn } from './json.ts'
import type { ModelDelta } from './port.ts'
import type { ProviderSearch, SearchedPage } from './providers/ai-sdk-provider.ts'

const MAX_LISTED = 20
const MAX_LINE = 500

type SearchDelta = Extract<ModelDelta, { type: 'provider_tool' }>

/** Undefined if this was no search, or if its result holds nothing to show. */
export function showSearch(
  search: ProviderSearch | undefined,
  call: LanguageModelV4ToolCall,
  { result, isError }: LanguageModelV4ToolResult,
  durationMs: number,
): SearchDelta | undefined {
  if (!search?.readResult || call.toolName !== search.tool.name) return undefined
  const { pages, args: reported } = search.readResult(result)
  const output = isError ? `The search failed (${errorCode(result)}).` : listPages(pages)
  return {
    type: 'provider_tool',
    name: 'web_search',
    args: { ...parseArgs(call.input), ...reported },
    output,
    durationMs,
  }
}

/** Sources that the provider reports when the answer is complete. */
export function showSources(
  search: ProviderSearch | undefined,
  metadata: SharedV4ProviderMetadata | undefined,
): SearchDelta | undefined {
  const report = search?.readSources?.(metadata)
  if (!report) return undefined
  const { args = {}, pages } = report
  return { type: 'provider_tool', name: 'web_search', args, output: listPages(pages), durationMs: 0, late: true }
}

function listPages(pages: readonly SearchedPage[]): string {
  const shown = pages.filter(({ url }) => url !== '').slice(0, MAX_LISTED)
  if (shown.length === 0) return '[The provider searched and named no pages.]'
  const lines = shown.map(({ title, url, date }, i) =>
    [`${i + 1}. ${title || url}`, ...(title || date ? [`   ${url}${date ? ` (${date})` : ''}`] : [])]
      .map((line) => line.replace(/\s+/g, ' ').replace(/^ /, '   ').slice(0, MAX_LINE))
      .join('\n'),
  )
  const count = shown.length === 1 ? '1 result' : `${shown.length} results`
  return [`[${count}, found by the model's provider]`, ...lines].join('\n\n')
}

function errorCode(result: unknown): string {
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
