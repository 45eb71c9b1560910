/** Input of every function in this room: the configuration, what the command asked for, and where to register closers. */
import type { FastifyBaseLogger } from 'fastify'
import type { Config } from '../config.ts'
import type { EngineDependencies } from '../engine/dependencies.ts'
import type { Begun } from './begin-sandboxes.ts'
import type { Closers } from './closers.ts'

export interface OpenOptions {
  readonly log: FastifyBaseLogger
  /**
   * `serve`: works on all queued interactions. `one-shot`: for one command, which may run beside a server on the same data
   * directory: works only on the interactions that it accepted itself.
   */
  readonly mode: 'serve' | 'one-shot'
  /** Closed with the server. */
  readonly sandboxes: Begun
  /** Environment that holds the API keys of the model providers. */
  readonly env: NodeJS.ProcessEnv
  /** For tests. */
  readonly onPoint?: EngineDependencies['onPoint']
}

export interface ComposeContext extends Omit<OpenOptions, 'sandboxes'> {
  readonly config: Config
  /** Interactions that this process works on: none, only its own, or all that are queued. */
  readonly works: 'none' | 'own' | 'all'
  readonly emit: EngineDependencies['emit']
  readonly closers: Closers
}
