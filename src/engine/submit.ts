/** Accepts a run: checks and stores everything that it needs before the caller gets an answer. */

import { type Agent, overrideSettings, type RunSettings } from '../domain/agent.ts'
import { ErrandError } from '../domain/errors.ts'
import type { RunEvent, Warning } from '../domain/event.ts'
import { newId } from '../domain/ids.ts'
import type { Interaction, RunRequest, RunSpec } from '../domain/interaction.ts'
import { withDefaults } from '../domain/model-parameters.ts'
import { resolve } from '../domain/resolve.ts'
import type { SkillOffers } from '../skills/port.ts'
import { agentConfigAt } from '../store/agents.ts'
import { begunEvent } from '../store/claims.ts'
import { numberEvents } from '../store/events.ts'
import { findByIdempotencyKey } from '../store/idempotency.ts'
import { type InsertOutcome, insertInteraction } from '../store/insert-interaction.ts'
import { findInteraction } from '../store/interactions.ts'
import { DatabaseUnavailable } from '../store/port.ts'
import type { EngineDependencies } from './dependencies.ts'
import type { SubmitOptions, Submitted } from './engine.ts'
import { WORK } from './hub.ts'
import { acceptServers } from './mcp-servers.ts'
import type { Worker } from './queue/worker.ts'
import { refuseAddresses } from './run/linked-files.ts'
import { checkInjections } from './run/network-credentials.ts'
import { storeFile } from './run/store-file.ts'
import { refuseWebhook, webhookOwner } from './webhooks.ts'

const IDEMPOTENCY_MS = 24 * 3600 * 1000

export async function submitRun(
  deps: EngineDependencies,
  worker: Worker | undefined,
  projectId: string,
  request: RunRequest,
  options: SubmitOptions,
): Promise<Submitted> {
  const notBefore = deps.now() - IDEMPOTENCY_MS
  options = { ...options, idempotency: sealIdempotency(deps, options.idempotency) }
  const earlier =
    options.idempotency && (await findByIdempotencyKey(deps.db, projectId, options.idempotency, notBefore))
  if (earlier && !earlier.released) return { interactionId: earlier.interactionId, joined: true }
  const retryOf = earlier?.interactionId

  const checked = await checkRun(deps, projectId, request, options)
  const files = await storeInputs(deps, checked.id, request)
  const spec: RunSpec = { ...checked.spec, ...files, ...(retryOf !== undefined && { retryOf }) }
  const reservation = worker?.reserve()
  try {
    const submission = { id: checked.id, spec, warnings: checked.warnings, projectId, request, options, notBefore }
    return await storeRun(deps, reservation, submission)
  } catch (error) {
    // If it is unknown whether the run was stored, its files stay. The reaper removes orphans.
    const settled = !(error instanceof ErrandError || error instanceof DatabaseUnavailable)
    if (settled) await deps.blobs.removeAll(checked.id).catch(() => {})
    throw error
  } finally {
    reservation?.release()
  }
}

/** Checks everything that the run needs. Throws ErrandError if it can't be accepted. */
async function checkRun(
  deps: EngineDependencies,
  projectId: string,
  request: RunRequest,
  { strict, traceparent }: SubmitOptions,
): Promise<{ id: string; spec: Omit<RunSpec, keyof InputFiles>; warnings: Warning[] }> {
  await deps.budgets.admit(projectId)
  refuseAddresses(deps, projectId, request.files)
  refuseWebhook(deps.egress, request.webhook)
  const agent = await findAgent(deps, projectId, request)
  const previous = await findPrevious(deps, projectId, request.previousInteractionId)
  const id = newId('int', deps.now())
  const settings = overrideSettings(agent?.config ?? {}, request.settings)
  const skills = await deps.skills.lookUp(projectId, settings.skills ?? [])
  const resolution = resolveRequest(deps, request, settings, agent, skills)
  await deps.schemas.admit(projectId, request.responseFormat)
  await checkInjections(deps.credentials, projectId, resolution.spec.network)
  const { mcp, warnings: unmet } = await acceptServers(deps, projectId, id, resolution.mcp)
  const spec = {
    ...resolution.spec,
    mcp,
    conversationId: previous ? (previous.spec.conversationId ?? previous.id) : id,
    ...(request.webhook && { webhook: true as const }),
    ...(traceparent !== undefined && { traceparent }),
  }
  return { id, spec, warnings: decideUnmet([...resolution.warnings, ...unmet], strict) }
}

interface Submission {
  readonly id: string
  readonly spec: RunSpec
  readonly warnings: readonly Warning[]
  readonly projectId: string
  readonly request: RunRequest
  readonly options: SubmitOptions
  /** Idempotency keys of runs before this time are forgotten. */
  readonly notBefore: number
}

/** Stores the run with its first events. If a slot is reserved, the run begins at once. */
async function storeRun(
  deps: EngineDependencies,
  reservation: ReturnType<Worker['reserve']>,
  { id, spec, warnings, projectId, request, options, notBefore }: Submission,
): Promise<Submitted> {
  const events: RunEvent[] = [
    { type: 'stage', stage: 'queued' },
    ...warnings.map((warning) => ({ type: 'warning' as const, ...warning })),
  ]
  const first = numberEvents(events, 0)
  const inserted = await insertInteraction(
    deps.db,
    {
      id,
      projectId,
      keyId: options.keyId,
      spec,
      labels: request.labels,
      events: first,
      createdAt: deps.now(),
      idempotency: options.idempotency && { ...options.idempotency, notBefore, releasedBy: spec.retryOf },
      webhook: sealWebhook(deps, id, request.webhook),
      queuedPerProject: deps.limits.queuedPerProject,
      runningPerProject: deps.limits.runningPerProject,
    },
    reservation?.claimant,
  )
  if (inserted.outcome !== 'accepted') {
    await deps.blobs.removeAll(id).catch(() => {})
    return await notInserted(deps, projectId, options, notBefore, inserted)
  }
  deps.onPoint?.('accepted')
  deps.emit({ type: 'accepted', interactionId: id, projectId })
  const { claim } = inserted
  if (claim && reservation) {
    reservation.start(claim, spec)
    // Only this run writes further events, and it has not begun.
    return { interactionId: id, joined: false, begun: [...first, begunEvent(claim)] }
  }
  deps.hub.publish(WORK, [])
  return { interactionId: id, joined: false }
}

/** Stores a keyed digest of the request: it may contain secrets that are easy to guess. */
function sealIdempotency({ vault }: EngineDependencies, idempotency: SubmitOptions['idempotency']) {
  return idempotency && { ...idempotency, fingerprint: vault.digest(idempotency.fingerprint) }
}

function sealWebhook({ vault }: EngineDependencies, id: string, webhook: RunRequest['webhook']) {
  return webhook && { sealedUrl: vault.seal(webhook.url, webhookOwner(id)), revision: webhook.revision }
}

async function notInserted(
  deps: EngineDependencies,
  projectId: string,
  { idempotency }: SubmitOptions,
  notBefore: number,
  inserted: Exclude<InsertOutcome, { outcome: 'accepted' }>,
): Promise<Submitted> {
  if (inserted.outcome === 'duplicate_key' && idempotency) {
    const other = await findByIdempotencyKey(deps.db, projectId, idempotency, notBefore)
    // Even if that run has failed: the requests were concurrent, so they share it.
    if (other) return { interactionId: other.interactionId, joined: true }
  }
  const { runningPerProject, queuedPerProject } = deps.limits
  throw new ErrandError(
    'unavailable',
    `This project has ${runningPerProject} interactions running and ${queuedPerProject} waiting already. Try again when some have ended.`,
  )
}

async function findAgent(
  { db }: EngineDependencies,
  projectId: string,
  request: RunRequest,
): Promise<Agent | undefined> {
  const { agentId, agentVersion } = request
  if (agentId === undefined) return undefined
  const agent = await agentConfigAt(db, projectId, agentId, agentVersion)
  if (agent) return agent
  const version = agentVersion === undefined ? '' : ` with a version ${agentVersion}`
  throw new ErrandError('not_found', `There is no agent ${JSON.stringify(agentId)}${version}.`, { param: 'agentId' })
}

/** The interaction that the new one continues, if any. Throws ErrandError `not_found`, or `conflict` while it is running. */
async function findPrevious(
  { db }: EngineDependencies,
  projectId: string,
  id: string | undefined,
): Promise<Interaction | undefined> {
  if (id === undefined) return undefined
  const param = 'previousInteractionId'
  const previous = await findInteraction(db, id, projectId)
  if (!previous) throw new ErrandError('not_found', `There is no interaction ${JSON.stringify(id)}.`, { param })
  if (previous.status === 'running') {
    throw new ErrandError('conflict', `The interaction ${id} is still running; continue from it when it has ended.`, {
      param,
    })
  }
  return previous
}

function resolveRequest(
  deps: EngineDependencies,
  request: RunRequest,
  settings: RunSettings,
  agent: Agent | undefined,
  skills: SkillOffers,
) {
  const { catalogue, toolProviders, mcpServers, limits } = deps
  const defaultModel = catalogue.defaultName
  const model = settings.model ?? defaultModel
  const entry = catalogue.get(model)
  if (!entry) {
    const message = `There is no model ${JSON.stringify(model)} here. There are: ${catalogue.names().join(', ')}.`
    throw new ErrandError('invalid_request', message, { param: 'model' })
  }
  if (entry.unavailable !== undefined) throw new ErrandError('unavailable', entry.unavailable)
  const tools = new Set(toolProviders.flatMap(({ offers }) => offers))
  if (entry.searches) tools.add('web_search')
  const offer = { defaultModel, limits, tools, mcpServers, skills }
  const { parameters = {} } = entry
  const { spec, mcp, warnings } = resolve(request, { ...settings, ...withDefaults(settings, parameters) }, agent, offer)
  const all: Warning[] = [...request.warnings, ...warnings]
  if (entry.demo && model !== 'demo') all.push(demoWarning(model))
  if (spec.policy.maxCost !== undefined && !entry.price) all.push(costUnknown(model))
  if (request.files.length > 0 && spec.tools.length === 0) all.push(FILES_UNREADABLE)
  return { spec, mcp, warnings: all }
}

function demoWarning(model: string): Warning {
  return {
    code: 'demo_model',
    param: 'model',
    message: `No real model is configured: ${model} was answered by the built-in demo model. Configure one in errand.yaml or set a provider's key.`,
  }
}

function costUnknown(model: string): Warning {
  return {
    code: 'cost_unknown',
    param: 'policy.maxCost',
    message: `The model ${model} has no price here, so policy.maxCost can't be enforced. The operator can set one in errand.yaml.`,
  }
}

const FILES_UNREADABLE: Warning = {
  code: 'files_not_readable',
  param: 'tools',
  message: 'Files were attached, but no tool that could read them is enabled; the model only gets their names.',
}

/** Codes of the warnings that `Prefer: handling=strict` makes errors. Unknown tools and fields never fail a call. */
const UNMET = new Set(['unknown_skill', 'mcp_unavailable'])

/**
 * The warnings, with what follows for the run in the message of each unmet one. Throws `invalid_request` if `strict` and one
 * is unmet.
 */
function decideUnmet(warnings: readonly Warning[], strict: boolean): Warning[] {
  const unmet = warnings.filter(({ code }) => UNMET.has(code))
  const [first] = unmet
  if (strict && first) {
    const message = `${first.message} The request was refused because of \`Prefer: handling=strict\`.`
    throw new ErrandError('invalid_request', message, { param: first.param, details: unmet })
  }
  const goesOn = (warning: Warning) => ({ ...warning, message: `${warning.message} The run goes on without it.` })
  return warnings.map((warning) => (unmet.includes(warning) ? goesOn(warning) : warning))
}

type InputFiles = Required<Pick<RunSpec, 'inputFiles' | 'linkedFiles'>>

/** Stores the inline files, and assigns keys to the files by URL. */
async function storeInputs({ blobs }: EngineDependencies, id: string, { files }: RunRequest): Promise<InputFiles> {
  const inputFiles = []
  const linkedFiles = []
  for (const [i, file] of files.entries()) {
    const blob = `${id}/in/${i}`
    if ('url' in file) linkedFiles.push({ ...file, blob })
    else inputFiles.push(await storeFile(blobs, blob, file.name, file.bytes, file.mimeType))
  }
  return { inputFiles, linkedFiles }
}
