/** Recorded streams of providers whose models use the provider's own web search, in the documented formats. */

const sse = (list: readonly object[], named: boolean) =>
  list
    .map((data) => `${named ? `event: ${(data as { type: string }).type}\n` : ''}data: ${JSON.stringify(data)}\n\n`)
    .join('')

const block = (index: number, content_block: object, ...deltas: object[]) => [
  { type: 'content_block_start', index, content_block },
  ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]

/** Blocks of an Anthropic turn with a web search (platform.claude.com, "Web search tool"). */
export const CLAUDE_SEARCH = [
  { type: 'text', text: '' },
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
  {
    type: 'web_search_tool_result',
    tool_use_id: 'srvtoolu_1',
    content: [
      {
        type: 'web_search_result',
        url: 'https://otters.example/',
        title: 'Otters',
        encrypted_content: 'SEALED',
        page_age: 'April 30, 2026',
      },
      { type: 'web_search_result', url: 'https://b.example/', title: 'B', encrypted_content: 'ALSO', page_age: null },
    ],
  },
] as const

function claudeStream(blocks: readonly object[][], stop: string): string {
  const usage = { input_tokens: 10, output_tokens: 1 }
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'claude',
    stop_reason: null,
    usage,
  }
  return sse(
    [
      { type: 'message_start', message },
      ...blocks.flatMap(([start, ...deltas], index) => block(index, start!, ...deltas)),
      { type: 'message_delta', delta: { stop_reason: stop }, usage: { output_tokens: 20 } },
      { type: 'message_stop' },
    ],
    true,
  )
}

const text = (words: string) => [
  { type: 'text', text: '' },
  { type: 'text_delta', text: words },
]

/** A stream with the text `before`, a search, and the text `after`. */
export function claudeSearches(before: string, query: string, after: string, stop = 'end_turn'): string {
  const query_json = { type: 'input_json_delta', partial_json: JSON.stringify({ query }) }
  const [, use, result] = CLAUDE_SEARCH
  const searched = [...(before ? [text(before)] : []), [use, query_json], [result]]
  return claudeStream(after ? [...searched, text(after)] : searched, stop)
}

export function claudeSays(words: string): string {
  return claudeStream([text(words)], 'end_turn')
}

/** A stream with the text `before`, a search, and a call of one of Errand's tools. */
export function claudeCallAfterSearch(before: string, query: string, name: string, args: object): string {
  const [, use, result] = CLAUDE_SEARCH
  const written = (input: object) => ({ type: 'input_json_delta', partial_json: JSON.stringify(input) })
  const call = { type: 'tool_use', id: 'toolu_9', name, input: {} }
  return claudeStream([text(before), [use, written({ query })], [result], [call, written(args)]], 'tool_use')
}

export const OPENAI_ACTION = {
  type: 'search',
  query: 'otters',
  queries: ['otters'],
  sources: [
    { type: 'url', url: 'https://otters.example/' },
    { type: 'url', url: 'https://b.example/' },
  ],
}

/** A response of OpenAI with a web_search_call (platform.openai.com/docs/guides/tools-web-search). */
export function openaiSearches(words: string): string {
  const response = { id: 'resp_1', created_at: 1, model: 'gpt', service_tier: null }
  const call = { type: 'web_search_call', id: 'ws_1', status: 'completed', action: OPENAI_ACTION }
  const usage = { input_tokens: 10, output_tokens: 5, input_tokens_details: {}, output_tokens_details: {} }
  return sse(
    [
      { type: 'response.created', response },
      {
        type: 'response.output_item.added',
        output_index: 0,
        item: { type: 'web_search_call', id: 'ws_1', status: 'in_progress' },
      },
      { type: 'response.output_item.done', output_index: 0, item: call },
      { type: 'response.output_item.added', output_index: 1, item: { type: 'message', id: 'msg_1' } },
      { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 1, content_index: 0, delta: words },
      { type: 'response.output_item.done', output_index: 1, item: { type: 'message', id: 'msg_1', content: [] } },
      { type: 'response.completed', response: { ...response, incomplete_details: null, usage } },
    ],
    true,
  )
}

/** A response of Gemini with grounding (ai.google.dev/gemini-api/docs/google-search). */
export function geminiSearches(words: string): string {
  const grounding = {
    webSearchQueries: ['otters', 'sea otters'],
    searchEntryPoint: { renderedContent: '<div>' },
    groundingChunks: [
      { web: { uri: 'https://vertexaisearch.cloud.google.com/grounding-api-redirect/1', title: 'otters.example' } },
    ],
    groundingSupports: [{ segment: { endIndex: 5, text: 'Otter' }, groundingChunkIndices: [0] }],
  }
  return sse(
    [
      { candidates: [{ content: { role: 'model', parts: [{ text: words }] }, index: 0 }] },
      {
        candidates: [
          {
            content: { role: 'model', parts: [{ text: '.' }] },
            finishReason: 'STOP',
            groundingMetadata: grounding,
            index: 0,
          },
        ],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
      },
    ],
    false,
  )
}
