/** The dependencies of the routes. */
import type { FastifyBaseLogger } from 'fastify'
import type { Credentials } from '../accounts/credentials.ts'
import type { Blobs } from '../blobs/port.ts'
import type { Limits } from '../domain/limits.ts'
import type { Engine } from '../engine/engine.ts'
import type { Catalogue } from '../models/port.ts'
import type { Skills } from '../skills/port.ts'
import type { AgentStore } from '../store/agent-store.ts'
import type { Emit } from '../telemetry/events.ts'
import type { InFlight } from './gate/in-flight.ts'
import type { RateLimits } from './gate/rate-limits.ts'
import type { Readers } from './gate/readers.ts'
import type { Signer } from './response/signed-urls.ts'
import type { ServerFacts } from './server-facts.ts'
import type { Codec } from './wire/codec.ts'

export interface Edge {
  readonly engine: Engine
  readonly agents: AgentStore
  readonly credentials: Credentials
  readonly skills: Skills
  readonly blobs: Blobs
  readonly catalogue: Catalogue
  readonly signer: Signer
  readonly rateLimits: RateLimits
  readonly inFlight: InFlight
  readonly readers: Readers
  readonly limits: Limits
  readonly facts: ServerFacts
  /** Number of nodes that run interactions. Undefined if there is only this one. */
  readonly workers?: () => number
  /** Names of the MCP servers that the operator registered. */
  readonly mcpServers: ReadonlySet<string>
  readonly log: FastifyBaseLogger
  readonly emit: Emit
  /** The newest codec. The OpenAPI document shows its schemas. */
  readonly documented: Codec
  /** Aborts when the server closes: streams end, and waiting callers get an error. */
  readonly closing: AbortSignal
}
