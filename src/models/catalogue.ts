/**
 * The catalogue: model names and the models they refer to. The first source that has models is used:
 *
 *     errand.yaml  →  a known key in the environment  →  a model server on loopback  →  the built-in demo model
 *
 * errand.yaml defines its own names; the other sources define the specification's two names. `demo` is added if the demo
 * model is allowed. Without any source the two names exist, with the reason why they cannot be called.
 */
import { Agent } from 'undici'
import type { Config, ModelConfig } from '../config.ts'
import { parametersIn } from '../domain/model-parameters.ts'
import type { Emit } from '../telemetry/events.ts'
import { type Breaker, createBreaker, guardModel } from './breaker.ts'
import { failed } from './failures.ts'
import { knownWindow } from './known-windows.ts'
import { findLocalServer } from './local-servers.ts'
import type { Catalogue, CatalogueEntry, Model, ModelDescription, ModelHealth } from './port.ts'
import { type Env, type LocalServer, type OpenContext, SPEC_NAMES } from './providers/provider.ts'
import { ALL_PROVIDERS, findProvider, SELECTING_KEYS } from './providers/registry.ts'
import { type RequestExtras, readExtras } from './request-extras.ts'
import type { OnRetry } from './retry.ts'

export interface CatalogueOptions extends Pick<Config, 'models' | 'defaultModel' | 'demo'> {
  /** Whether models use their provider's own web search, if it has one. */
  readonly ownSearch?: boolean
  readonly env: Env
  /** False if other nodes call the models of errand.yaml and have their keys. Default true. */
  readonly calls?: boolean
  /** Creates the demo model's entry under a name. */
  readonly demoEntry: (name: string) => CatalogueEntry
  /** A pino logger, or one with the same method. */
  readonly log: { warn(details: object, message: string): void }
  readonly emit?: Emit
  /** For tests. */
  readonly localServers?: readonly LocalServer[]
  readonly probeTimeoutMs?: number
}

/** Never rejects. An entry that cannot be called has the reason. */
export async function openCatalogue(options: CatalogueOptions): Promise<Catalogue> {
  // Each model has its own idle timeout. With HTTP/2 many runs would share one connection and lose it together.
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0, allowH2: false })
  const room: Room = { ...options, dispatcher, breakers: new Map() }
  const entries = configured(room) ?? byKnownKey(room) ?? (await byLocalServer(room)) ?? byDemoOrNothing(room)
  const byName = new Map(entries.map((entry) => [entry.name, entry]))
  if (options.demo && !byName.has('demo')) byName.set('demo', options.demoEntry('demo'))
  const names = [...byName.keys()]

  return {
    get: (name) => byName.get(name),
    names: () => names,
    defaultName: byName.has(options.defaultModel) ? options.defaultModel : names[0]!,
    describe: () => [...byName.values()].map(({ open: _open, health: _health, ...description }) => description),
    close: () => dispatcher.close(),
  }
}

interface Room extends CatalogueOptions {
  readonly dispatcher: Agent
  /** Shared by all models with the same provider, address and key. */
  readonly breakers: Map<string, Breaker>
}

function configured(room: Room): CatalogueEntry[] | undefined {
  const models = Object.entries(room.models)
  if (models.length === 0) return undefined
  return models.map(([name, config]) => configuredEntry(name, config, 'errand.yaml', room))
}

function byKnownKey(room: Room): CatalogueEntry[] | undefined {
  for (const { name: provider, keyEnvs, specModels } of ALL_PROVIDERS) {
    const apiKeyEnv = keyEnvs.find((key) => room.env[key]?.trim())
    if (!apiKeyEnv || !specModels) continue
    const models = specModels(room.env)
    return SPEC_NAMES.map((name) => configuredEntry(name, { provider, apiKeyEnv, ...models[name] }, apiKeyEnv, room))
  }
  return undefined
}

/** A local model may take long for a long prompt before its first byte. */
const LOCAL_IDLE_TIMEOUT_S = 300
const PROBE_TIMEOUT_MS = 300

async function byLocalServer(room: Room): Promise<CatalogueEntry[] | undefined> {
  const searched = ALL_PROVIDERS.find(({ localServers }) => localServers)
  if (!searched) return undefined
  const { name: provider } = searched
  const { localServers = searched.localServers ?? [], probeTimeoutMs = PROBE_TIMEOUT_MS } = room
  const found = await findLocalServer(localServers, probeTimeoutMs, room.dispatcher)
  if (!found) return undefined
  const { model, origin, name: server } = found
  const config: ModelConfig = { provider, model, baseUrl: `${origin}/v1`, idleTimeoutS: LOCAL_IDLE_TIMEOUT_S }
  return SPEC_NAMES.map((name) => configuredEntry(name, config, `${server} at ${new URL(origin).host}`, room))
}

function byDemoOrNothing(room: Room): CatalogueEntry[] {
  if (room.demo) return SPEC_NAMES.map((name) => room.demoEntry(name))
  const unavailable =
    `No model is configured. Set one of ${SELECTING_KEYS.join(', ')}, name a model under "models" in errand.yaml, or start a model server ` +
    'on this machine (Ollama, llama.cpp, LM Studio, vLLM). ERRAND_DEMO=on lets the built-in demo model answer.'
  return SPEC_NAMES.map((name) =>
    toEntry(
      {
        name,
        provider: 'none',
        model: 'none',
        source: 'none',
        vision: false,
        documents: false,
        demo: false,
        unavailable,
      },
      refuse,
    ),
  )
}

function configuredEntry(name: string, config: ModelConfig, source: string, room: Room): CatalogueEntry {
  const provider = findProvider(config.provider)!
  if (!provider.open) return { ...room.demoEntry(name), source }
  const { acceptsMedia = false, canSearch } = provider
  const { model, price, vision = acceptsMedia, documents = vision && acceptsMedia } = config
  const extras = readExtras(name, config, room.env)
  const opening = typeof extras === 'string' ? extras : provider.open(config, openContext(name, config, extras, room))
  const { contextWindow = knownWindow(config) } = config
  const searches = room.ownSearch === true && canSearch?.(model)
  const description = {
    name,
    provider: provider.name,
    model,
    source,
    price,
    vision,
    documents,
    demo: false,
    parameters: parametersIn(config),
    ...(searches && { searches }),
    ...(contextWindow !== undefined && { contextWindow }),
    ...(config.fallbacks?.length && { fallbacks: config.fallbacks }),
  }
  if (typeof opening !== 'string') {
    const breaker = breakerOf(config, room)
    const open = async () => guardModel(await opening(), breaker)
    return { ...toEntry(description, open), health: breaker.health }
  }
  return toEntry(room.calls === false ? description : { ...description, unavailable: opening }, refuse)
}

function breakerOf({ provider, baseUrl, apiKeyEnv }: ModelConfig, { breakers, log }: Room): Breaker {
  const key = JSON.stringify([provider, baseUrl, apiKeyEnv])
  const onChange = ({ state, failures, lastFailure }: ModelHealth) =>
    state === 'resting'
      ? log.warn({ provider, failures, failure: lastFailure?.message }, 'a model provider is left alone for a while')
      : log.warn({ provider }, 'a model provider is back')
  const breaker = breakers.get(key) ?? createBreaker({ now: Date.now, onChange })
  breakers.set(key, breaker)
  return breaker
}

function openContext(
  name: string,
  config: ModelConfig,
  extras: RequestExtras,
  { env, dispatcher, log, emit }: Room,
): OpenContext {
  const onRetry: OnRetry = (retry) => {
    log.warn({ model: name, ...retry }, 'trying a model call again')
    emit?.({ type: 'model_retried', model: name })
  }
  const idleTimeoutMs = config.idleTimeoutS === undefined ? undefined : config.idleTimeoutS * 1000
  const { maxTries, maxOutputTokens } = config
  return { name, env, client: { ...extras, dispatcher, maxTries, maxOutputTokens, idleTimeoutMs, onRetry } }
}

function toEntry(
  description: ModelDescription,
  open: (description: ModelDescription) => Promise<Model> | Model,
): CatalogueEntry {
  let opened: Promise<Model> | Model | undefined
  return {
    ...description,
    open: () => {
      opened ??= open(description)
      return opened
    },
  }
}

function refuse({ unavailable = '' }: ModelDescription): Model {
  return { call: async () => ({ ok: false, failure: failed('refused', unavailable), tokens: undefined }) }
}
