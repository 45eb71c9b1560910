/** The ids of tool calls in the log. Models repeat ids, also within a turn, so an id that is not usable gets a new one. */
import type { ToolCallPart } from '../../domain/message.ts'

const MAX_CHARS = 64

/** An id for each call of a turn, unique among them: the model's own id if possible. Pure. */
export function callIdsOf(calls: readonly Pick<ToolCallPart, 'callId'>[]): string[] {
  const own = new Set(calls.map(({ callId }) => callId))
  const given = new Set<string>()
  let number = 0
  return calls.map(({ callId }) => {
    let id = callId
    const isUsable = id !== '' && id.length <= MAX_CHARS && !given.has(id)
    while (!isUsable && (id === callId || own.has(id))) id = `call-${++number}`
    given.add(id)
    return id
  })
}
