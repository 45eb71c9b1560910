/** Puts the engine together: submit, follow, read, cancel, remove, and the worker and reaper behind them. */

import { ErrandError } from '../domain/errors.ts'
import { decodeEvent } from '../domain/event.ts'
import { createInteractionFold, type InteractionView } from '../domain/fold.ts'
import type { Interaction, InteractionSummary } from '../domain/interaction.ts'
import type { Usage } from '../domain/usage.ts'
import { listAudit } from '../store/audit.ts'
import { listEvents, readEvents } from '../store/events.ts'
import { deleteInteraction, findInteraction } from '../store/interactions.ts'
import { listInteractions } from '../store/list-interactions.ts'
import type { Database } from '../store/port.ts'
import type { Removal } from '../store/removals.ts'
import { readTurnTokens } from '../store/turns.ts'
import { listWebhooks, readWebhookLog, type SealedWebhook } from '../store/webhooks.ts'
import { decide, undecided } from './agent/approval.ts'
import type { EngineDependencies } from './dependencies.ts'
import type { Engine, Reading } from './engine.ts'
import { followLog } from './follower.ts'
import { nothingLeft } from './queue/cleanup.ts'
import { endOutside } from './queue/ending.ts'
import { openReaper } from './queue/reaper.ts'
import { openWorker } from './queue/worker.ts'
import { createMeter } from './run/meter.ts'
import { Stop } from './run/stop.ts'
import { submitRun } from './submit.ts'
import { waitForEnd } from './wait-for-end.ts'
import { webhookOwner } from './webhooks.ts'

/** Events read at once. With large tool results, a page has several MB. */
const EVENTS_PAGE = 200
const FOLLOW_POLL_MS = 2_000

export interface EngineOptions {
  readonly deps: EngineDependencies
  readonly owner: string
  readonly slots: number
  readonly leaseMs: number
  /** `all`: works on the whole queue. `own`: works only on what it accepted (a one-shot command). `none`: only accepts. */
  readonly works: 'all' | 'own' | 'none'
  /** True if this process does the maintenance that one process per database must do. */
  readonly leads?: () => boolean
}

export function openEngine({
  deps,
  owner,
  slots,
  leaseMs,
  works,
  leads = () => true,
}: EngineOptions): Engine & { readonly running: number } {
  const { db, hub } = deps
  const pollMs = Math.min(1_000, leaseMs / 3)
  const worker =
    works === 'none' ? undefined : openWorker({ deps, owner, slots, leaseMs, pollMs, claims: works === 'all' })
  const reaper = works === 'own' ? undefined : openReaper({ deps, owner, leads, remove })
  let closing: Promise<void> | undefined
  worker?.wake()

  /** The database, restricted to a caller's project. */
  const seenBy = (projectId: string) => db.forProject(projectId)

  async function readView(seen: Database, id: string, shows?: 'final', reading?: Reading): Promise<InteractionView> {
    const fold = createInteractionFold(shows)
    for (let after = 0; ; ) {
      const page = await readEvents(seen, id, after, EVENTS_PAGE)
      reading?.read(page.reduce((sum, { data }) => sum + data.length, 0))
      for (const event of page) fold.add(decodeEvent(event))
      if (page.length < EVENTS_PAGE) return fold.view()
      after = page.at(-1)!.seq
    }
  }

  /** Final usage, usage of the run in this process, or usage from the stored turns. */
  async function usageOf(seen: Database, interaction: InteractionSummary): Promise<Usage> {
    const live = interaction.usage ?? worker?.get(interaction.id)?.usage()
    if (live) return live
    const turns = await readTurnTokens(seen, interaction.id)
    const { createdAt, spec } = interaction
    const priceOf = (model: string) => deps.catalogue.get(model)?.price
    return createMeter({ model: spec.model, priceOf, createdAt, now: deps.now, turns, toolCalls: 0 }).usage()
  }

  async function closeAll(graceMs: number): Promise<void> {
    await worker?.close(graceMs)
    await reaper?.close()
  }

  async function cancel(projectId: string, id: string): Promise<void> {
    const seen = seenBy(projectId)
    const interaction = await findInteraction(seen, id, projectId)
    if (!interaction) throw notFound(id)
    if (interaction.status === 'running') {
      const { spec, keyId } = interaction
      const countedFor = { projectId, agentId: spec.agentId, model: spec.model, keyId }
      const usage = await usageOf(seen, interaction)
      await endOutside({ ...deps, db: seen }, id, { status: 'cancelled', usage, countedFor })
      const run = worker?.get(id)
      run?.stop(new Stop('cancelled'))
      await deps.sandboxes.destroy(id)
      await run?.finished
    }
    const { status } = (await findInteraction(seen, id, projectId)) ?? interaction
    if (status !== 'cancelled') throw new ErrandError('conflict', `The interaction ${id} has ${status} already.`)
    await deps.sandboxes.destroy(id)
    // The run's sandboxes may be on another node.
    if (db.shared) await nothingLeft(deps, id)
  }

  /** `by`: a key's id, or `retention`. */
  async function remove(projectId: string, id: string, by: string): Promise<void> {
    const seen = seenBy(projectId)
    const interaction = await findInteraction(seen, id, projectId)
    if (!interaction) throw notFound(id)
    if (interaction.status === 'running' || !(await deleteInteraction(seen, removalOf(interaction, by, deps.now())))) {
      throw new ErrandError('conflict', `The interaction ${id} is still running; cancel it first.`)
    }
    // Files that could not be removed are orphans now, and the reaper removes them.
    await deps.blobs
      .removeAll(id)
      .catch((error) => deps.log.warn({ err: error, interactionId: id }, 'files could not be removed'))
  }

  return {
    submit(projectId, request, options) {
      if (closing) throw new ErrandError('unavailable', 'The server is shutting down. Try again in a few seconds.')
      return submitRun({ ...deps, db: seenBy(projectId) }, worker, projectId, request, options)
    },
    follow: (projectId, id, after, signal, known) =>
      followLog({ db: seenBy(projectId), hub, pollMs: FOLLOW_POLL_MS }, id, after, signal, known),
    waitForEnd: (projectId, id, signal) =>
      waitForEnd({ db: seenBy(projectId), hub, pollMs: FOLLOW_POLL_MS }, id, signal),
    find: (projectId, id) => findInteraction(seenBy(projectId), id, projectId),
    async get(projectId, id, reading) {
      const seen = seenBy(projectId)
      const found = await findInteraction(seen, id, projectId)
      if (!found) return undefined
      await reading?.begin(found.lastSeq)
      const view = await readView(seen, id, found.spec.output, reading)
      // The run may have ended between the two reads. Read the row again, so that both agree.
      const interaction = view.end && found.status === 'running' ? await findInteraction(seen, id, projectId) : found
      if (!interaction) return undefined
      // A recent decision may not be in the log yet.
      const pendingApprovals = await undecided(seen, id, view.pendingApprovals)
      return { interaction, view: { ...view, pendingApprovals }, usage: await usageOf(seen, interaction) }
    },
    async list(projectId, query) {
      const seen = seenBy(projectId)
      const page = await listInteractions(seen, projectId, query, query.pageSize)
      const interactions = await Promise.all(
        page.interactions.map(async (interaction) => ({ interaction, usage: await usageOf(seen, interaction) })),
      )
      return { interactions, next: page.more ? page.interactions.at(-1)!.id : undefined }
    },
    async events(projectId, id, query) {
      const seen = seenBy(projectId)
      return (await findInteraction(seen, id, projectId)) && listEvents(seen, id, query)
    },
    async audit(projectId, id, query) {
      const seen = seenBy(projectId)
      return (await findInteraction(seen, id, projectId)) && listAudit(seen, id, query)
    },
    cancel,
    async approve(projectId, id, verdict, keyId) {
      const seen = seenBy(projectId)
      const interaction = await findInteraction(seen, id, projectId)
      if (!interaction) throw notFound(id)
      if (interaction.status !== 'running') {
        throw new ErrandError('conflict', `The interaction ${id} has ${interaction.status} already; nothing waits.`)
      }
      const { pendingApprovals } = await readView(seen, id)
      await decide({ db: seen, hub }, id, pendingApprovals, verdict, { keyId, at: deps.now() })
    },
    remove,
    async webhookLog(projectId, id) {
      const seen = seenBy(projectId)
      if (!(await findInteraction(seen, id, projectId))) throw notFound(id)
      return readWebhookLog(seen, id)
    },
    async webhooks(projectId, query) {
      const { rows, next } = await listWebhooks(seenBy(projectId), projectId, query)
      const shown = ({ sealedUrl, ...row }: SealedWebhook) => {
        return { ...row, host: hostOf(deps.vault, sealedUrl, row.interactionId) }
      }
      return { webhooks: rows.map(shown), next }
    },
    async ready() {
      if (closing) return 'The server is shutting down.'
      // Test the writer: it may have failed while reads still work.
      await db.write([{ query: db.query.selectFrom('accounts').select('id').limit(1).compile() }])
      const models = deps.catalogue.describe()
      return models.some((model) => model.unavailable === undefined) || models[0]!.unavailable!
    },
    get running() {
      return worker?.running ?? 0
    },
    close(graceMs) {
      closing ??= closeAll(graceMs)
      return closing
    },
  }
}

/** The webhook's host; `unknown` if the URL was sealed with another server secret. */
function hostOf(vault: EngineDependencies['vault'], sealedUrl: string, interactionId: string): string {
  try {
    return new URL(vault.unseal(sealedUrl, webhookOwner(interactionId))).host
  } catch {
    return 'unknown'
  }
}

function removalOf(interaction: Interaction, removedBy: string, at: number): Removal {
  const { id, projectId, createdAt, lastSeq, spec, outputFiles } = interaction
  const files = [...spec.inputFiles, ...outputFiles]
  const fileBytes = files.reduce((sum, { size }) => sum + size, 0)
  return { interactionId: id, projectId, at, removedBy, createdAt, events: lastSeq, files: files.length, fileBytes }
}

function notFound(id: string): ErrandError {
  return new ErrandError('not_found', `There is no interaction ${JSON.stringify(id)}.`)
}
