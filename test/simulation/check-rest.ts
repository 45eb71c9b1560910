/**
 * Checks of a simulated world at rest: every interaction satisfies I1 to I6 (journal.ts) as the API shows it, usage
 * matches the stored calls, and all nodes shut down.
 */
import type { InteractionView } from '../../src/domain/fold.ts'
import type { Interaction } from '../../src/domain/interaction.ts'
import { addTokens, NO_TOKENS, type TokenCount } from '../../src/domain/usage.ts'
import type { Machine } from './fate.ts'
import type { Journal, Recorded } from './journal.ts'
import type { World } from './nodes.ts'
import type { Process } from './scheduler.ts'

const MINUTE_MS = 60_000

export async function checkRest(world: World, machines: readonly Machine[]): Promise<void> {
  const { scheduler, journal, files } = world
  const me: Process = { name: 'judge', state: 'running', skewMs: 0 }
  const [machine] = machines
  let open = true
  const done = (async () => {
    for (const [id, known] of journal.interactions) {
      const wasRemoved = known.removed
      const view = await machine!.node.ask(me, `get ${id}`, (engine) => engine.get(known.row.projectId, id))
      if (known.removed) {
        if (wasRemoved && view) journal.violation(id, 'it was removed but still exists')
        continue
      }
      if (!view) {
        journal.violation(id, 'I6: it does not exist')
        continue
      }
      if (view.interaction.status === 'running') journal.violation(id, 'I6: it has not ended')
      checkStory(journal, id, known, view.view)
      checkCalls(world, id, view.interaction)
      for (const { blob } of view.interaction.outputFiles) {
        if (!files.has(blob)) journal.violation(id, `the output file ${blob} is not in the store`)
      }
    }
    checkUsage(world)
    for (const { node } of machines) await node.shutDown(me, 0)
  })()
  void done
    .catch((error) => journal.violation('the world', `at rest: ${(error as Error).stack}`))
    .then(() => {
      open = false
    })
  const until = scheduler.now + MINUTE_MS
  while (open) {
    if (await scheduler.step(until)) continue
    journal.violation('the world', 'at rest, a node did not respond or did not close')
    return
  }
}

/** Checks that usage counts each end exactly once, whichever node wrote it, also for deleted interactions. */
function checkUsage({ database, journal }: World): void {
  const [counted] = database.look(`select sum(runs) runs, sum(failed) failed, sum(cancelled) cancelled
    from (select runs, failed, cancelled from usage union all select runs, failed, cancelled from usage_ends)`)
  const statuses = [...journal.interactions.values()].map(({ row }) => row.status)
  const count = (status: string) => statuses.filter((each) => each === status).length
  const ended = statuses.length - count('running')
  const said = [counted!.runs, counted!.failed, counted!.cancelled].map(Number).join(', ')
  const expected = [ended, count('failed'), count('cancelled')].join(', ')
  if (said !== expected)
    journal.violation('the world', `usage: reported runs, failed, cancelled are ${said}; actual are ${expected}`)
}

/** Checks that the usage of a run that ended by itself is the sum of its stored model calls, including failed ones. */
function checkCalls({ database, journal }: World, id: string, { status, usage, error }: Interaction): void {
  const isOwnEnd = status === 'completed' || error?.code === 'model_error'
  if (!isOwnEnd || !usage) return
  const rows = database.look('select tokens from turns where interaction_id = ? order by turn', id)
  const stored = rows.map(({ tokens }) => JSON.parse(String(tokens)) as TokenCount).reduce(addTokens, NO_TOKENS)
  const expected = `${rows.length} calls, ${stored.input} tokens in, ${stored.output} out`
  const used = `${usage.model_calls} calls, ${usage.input_tokens} tokens in, ${usage.output_tokens} out`
  if (used !== expected) journal.violation(id, `usage: reported ${used}, stored ${expected}`)
}

interface Told {
  readonly type: string
  readonly step?: number
  readonly text?: string
  readonly content?: string
}

/** Compares the interaction with its events, without the product’s own fold, which may be wrong itself. */
function checkStory(journal: Journal, id: string, { events }: Recorded, story: InteractionView): void {
  const told: Told[] = events.map(({ type, data }) => ({ type, ...JSON.parse(data) }))
  const output = told.map(({ type, text }) => (type === 'partial_output' ? text : '')).join('')
  if (output !== story.output) journal.violation(id, 'I3: the joined fragments differ from the output')
  const isWhole = JSON.parse(events.at(-1)?.data ?? '{}').stopReason === 'end_turn'
  checkAnswer(journal, id, output, isWhole)
  const steps = told.filter(({ type }) => ['reasoning_started', 'tool_call', 'tool_result'].includes(type))
  const trace = story.trace.map(({ step, type }) => `${step} ${type}`)
  const expected = steps.map(({ step, type }) => `${step} ${type === 'reasoning_started' ? 'reasoning' : type}`)
  if (trace.join() !== expected.join()) journal.violation(id, 'I4: the trace differs from the stream')
  if (steps.some(({ step }, i) => step !== i + 1))
    journal.violation(id, `steps are not numbered 1..n: ${expected.join(', ')}`)
}

/**
 * Checks the model's words `n.0 n.1 … n.end` (models.ts): each answer in the output begins with word 0, and no word is
 * missing or repeated. `isWhole`: each answer also has its end, so a broken one was continued.
 */
function checkAnswer(journal: Journal, id: string, output: string, isWhole: boolean): void {
  const next = new Map<string, number>()
  for (const word of output.split(/\s+/).filter((text) => text !== '')) {
    const [call, i] = word.split('.') as [string, string]
    if (i === 'end') next.set(call, Number.NaN)
    else if (Number(i) !== (next.get(call) ?? 0)) {
      journal.violation(id, `I3: the answer has ${word} where ${call}.${next.get(call) ?? 0} was expected`)
      return
    } else next.set(call, Number(i) + 1)
  }
  const broken = [...next].find(([, following]) => !Number.isNaN(following))
  if (isWhole && broken) journal.violation(id, `I3: the answer breaks off before ${broken.join('.')}`)
}
