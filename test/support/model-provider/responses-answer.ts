/** An answer as the events of OpenAI's Responses API. */
import type { ResponsesRequest } from './responses.ts'
import type { Fragment } from './script.ts'
import type { Answer, Rendered } from './serve.ts'
import { countedUsage } from './token-counts.ts'

type Encrypt = (reasoning: string) => string

function event(data: { readonly type: string; readonly [field: string]: unknown }): Buffer {
  return Buffer.from(`event: ${data.type}\ndata: ${JSON.stringify({ sequence_number: 0, ...data })}\n\n`)
}

export function renderResponse(answer: Answer<ResponsesRequest>, encrypt: Encrypt): Rendered {
  const { body, fragments, finish } = answer
  const response = { id: 'resp_fake', created_at: 1, model: body.model, service_tier: null }
  const turn = body.input.length
  let index = -1
  let text = ''
  const parts = fragments.map((fragment) => {
    if (fragment.first) {
      index++
      text = ''
    }
    text += fragment.text
    const at = { output_index: index, item_id: itemId(fragment, turn, index) }
    const item = (content: string, status: string) => itemOf(fragment, at.item_id, content, encrypt, status)
    const isReasoning = fragment.kind === 'reasoning'
    const added = { type: 'response.output_item.added', ...at, item: item('', 'in_progress') }
    const summary = { ...at, summary_index: 0 }
    const begin = [
      event(added),
      ...(isReasoning ? [event({ type: 'response.reasoning_summary_part.added', ...summary })] : []),
    ]
    const status = finish === 'length' && fragment === fragments.at(-1) ? 'incomplete' : 'completed'
    const end = [
      ...(isReasoning ? [event({ type: 'response.reasoning_summary_part.done', ...summary })] : []),
      event({ type: 'response.output_item.done', ...at, item: item(text, status) }),
    ]
    const delta = event({ type: DELTAS[fragment.kind], ...summary, content_index: 0, delta: fragment.text })
    return Buffer.concat([...(fragment.first ? begin : []), delta, ...(fragment.last ? end : [])])
  })
  const reason = INCOMPLETE[finish]
  const type = reason ? 'response.incomplete' : 'response.completed'
  const incomplete_details = reason ? { reason } : null
  return {
    head: [event({ type: 'response.created', response })],
    parts,
    tail: [],
    done: [event({ type, response: { ...response, incomplete_details, usage: usageOf(answer) } })],
  }
}

const DELTAS: Readonly<Record<Fragment['kind'], string>> = {
  reasoning: 'response.reasoning_summary_text.delta',
  text: 'response.output_text.delta',
  args: 'response.function_call_arguments.delta',
}

const INCOMPLETE: Readonly<Record<string, string>> = { length: 'max_output_tokens', content_filter: 'content_filter' }
const ID_PREFIX: Readonly<Record<Fragment['kind'], string>> = { reasoning: 'rs', text: 'msg', args: 'fc' }

function itemId({ kind }: Fragment, turn: number, index: number): string {
  return `${ID_PREFIX[kind]}_${turn}_${index}`
}

function itemOf({ kind, call }: Fragment, id: string, text: string, encrypt: Encrypt, status: string): object {
  if (kind === 'args')
    return { type: 'function_call', id, call_id: call!.id, name: call!.name, arguments: text, status }
  if (kind === 'text') {
    const content = text === '' ? [] : [{ type: 'output_text', text, annotations: [], logprobs: [] }]
    return { type: 'message', id, role: 'assistant', status, content }
  }
  const summary = text === '' ? [] : [{ type: 'summary_text', text }]
  return { type: 'reasoning', id, encrypted_content: encrypt(text), summary }
}

/** The same answer as one response that is not streamed. */
export function wholeResponse(answer: Answer<ResponsesRequest>, encrypt: Encrypt): object {
  const blocks: Fragment[] = []
  for (const fragment of answer.fragments) {
    if (fragment.first) blocks.push(fragment)
    else blocks.push({ ...fragment, text: blocks.pop()!.text + fragment.text })
  }
  const { body } = answer
  const output = blocks.map((block, i) =>
    itemOf(block, itemId(block, body.input.length, i), block.text, encrypt, 'completed'),
  )
  return { id: 'resp_fake', created_at: 1, model: body.model, status: 'completed', output, usage: usageOf(answer) }
}

function usageOf({ usage, admission: { billed }, fragments }: Answer<ResponsesRequest>): object | undefined {
  const { input, output, cachedInput = 0, reasoning = 0 } = usage || countedUsage(billed!, fragments)
  if (usage === false) return undefined
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cachedInput },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  }
}
