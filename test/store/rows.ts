/** Rows for store tests: interactions, events and ends, with only the fields that a test needs. */
import type { RunEvent, Stage } from '../../src/domain/event.ts'
import { newId } from '../../src/domain/ids.ts'
import type { RunSpec } from '../../src/domain/interaction.ts'
import type { Usage } from '../../src/domain/usage.ts'
import type { Claim, Claimant } from '../../src/store/claim-row.ts'
import { appendStatements, type Ending, type Fence, numberEvents, readEvents } from '../../src/store/events.ts'
import { type InsertOutcome, insertInteraction, type NewInteraction } from '../../src/store/insert-interaction.ts'
import type { Database, WriteResult } from '../../src/store/port.ts'
import type { Removal } from '../../src/store/removals.ts'
import type { CountedFor } from '../../src/store/usage.ts'

export const PROJECT = 'prj_one'
export const claimant: Claimant = { owner: 'home.worker', leaseMs: 60_000, runningPerProject: 100 }

export const SPEC: RunSpec = {
  instruction: 'Say “héllo” 🙂 and a \0.',
  model: 'fake',
  tools: ['code_execution'],
  skills: [],
  mcp: [],
  network: 'disabled',
  policy: {
    maxTurnDuration: 60,
    maxOutputTokens: 100,
    maxToolDuration: 60,
    sandbox: { memoryMiB: 512, cpus: 0.5, pids: 128, workspaceMiB: 256, files: 50_000, outputBytes: 65_536 },
  },
  inputFiles: [],
  onDisconnect: 'continue',
}

export const USAGE: Usage = {
  input_tokens: 1,
  output_tokens: 2,
  total_tokens: 3,
  duration_ms: 4,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  model_calls: 1,
  tool_calls: 0,
  sandbox_ms: 0,
}

/** Each id is behind the one before, as those of one process are that are not made in one millisecond. */
let clock = Date.now() - 1_000_000
const nextId = () => newId('int', ++clock)

export function newInteraction(changes: Partial<NewInteraction> = {}): NewInteraction {
  return {
    id: nextId(),
    projectId: PROJECT,
    keyId: 'key_one',
    spec: SPEC,
    labels: {},
    events: numberEvents([{ type: 'stage', stage: 'queued' }], 0),
    createdAt: Date.now(),
    queuedPerProject: 1_000,
    runningPerProject: 1_000,
    ...changes,
  }
}

/** Its id. With `createdAt`, it is of that age. */
export async function insert(db: Database, changes: Partial<NewInteraction> = {}): Promise<string> {
  const interaction = newInteraction(changes)
  const { outcome } = await insertInteraction(db, interaction, undefined)
  if (outcome !== 'accepted') throw new Error(outcome)
  if (changes.createdAt !== undefined) await backdate(db, interaction.id, changes.createdAt)
  return interaction.id
}

/** The database says itself when it was inserted. */
export async function backdate(db: Database, id: string, createdAt: number): Promise<void> {
  const query = db.query.updateTable('interactions').set({ created_at: createdAt }).where('id', '=', id)
  await db.write([{ query: query.compile(), rows: 1 }])
}

/** Inserted and claimed in one, with what its writer must hold. Its one event is the claim's own. */
export async function insertClaimed(db: Database, changes: Partial<NewInteraction> = {}): Promise<Claim> {
  const interaction = newInteraction({ events: [], ...changes })
  const inserted = await insertInteraction(db, interaction, claimant)
  if (inserted.outcome !== 'accepted' || !inserted.claim) throw new Error(inserted.outcome)
  return inserted.claim
}

export function countOutcomes(outcomes: readonly InsertOutcome[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { outcome } of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1
  return counts
}

export function said(...texts: string[]): RunEvent[] {
  return texts.map((text) => ({ type: 'partial_output', text }))
}

export function append(
  db: Database,
  fence: Fence,
  events: readonly RunEvent[],
  stage: Stage = 'working',
): Promise<WriteResult> {
  return db.write(appendStatements(db, fence, numberEvents(events, fence.lastSeq), stage, Date.now()))
}

const FOR: CountedFor = { projectId: PROJECT, agentId: undefined, model: SPEC.model, keyId: 'key_one' }

export function ending(id: string, changes: Partial<Ending> = {}): Ending {
  const completed: RunEvent = { type: 'completed', interactionId: id, status: 'cancelled', usage: USAGE }
  return { events: [completed], status: 'cancelled', usage: USAGE, countedFor: FOR, at: Date.now(), ...changes }
}

export async function typesOf(db: Database, id: string): Promise<string[]> {
  return (await readEvents(db, id, 0, 10_000)).map(({ seq, type }) => `${seq} ${type}`)
}

export function times<T>(count: number, make: (i: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i))
}

export function removal(interactionId: string, projectId = PROJECT): Removal {
  return { interactionId, projectId, at: 1, removedBy: 'key_1', createdAt: 0, events: 3, files: 2, fileBytes: 10 }
}
