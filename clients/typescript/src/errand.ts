import { Agents } from './agents.ts'
import { Credentials } from './credentials.ts'
import { Files } from './files.ts'
import type { Server } from './generated/types.ts'
import { Interactions } from './interactions.ts'
import { Skills } from './skills.ts'
import { type ClientOptions, createTransport, type RequestOptions, type Transport } from './transport.ts'

/**
 * Client of an Errand server.
 *
 *     const errand = new Errand({ apiKey, baseUrl })
 *     const { output } = await errand.interactions.create({ instruction: 'What is 17 * 23?', tools: ['code_execution'] })
 */
export class Errand {
  readonly interactions: Interactions
  readonly agents: Agents
  readonly skills: Skills
  readonly credentials: Credentials
  readonly files: Files
  readonly #transport: Transport

  /** Throws ErrandError if there is no API key. */
  constructor(options: ClientOptions = {}) {
    this.#transport = createTransport(options)
    this.interactions = new Interactions(this.#transport)
    this.agents = new Agents(this.#transport)
    this.skills = new Skills(this.#transport)
    this.credentials = new Credentials(this.#transport)
    this.files = new Files(this.#transport)
  }

  /** Describes the server: version, isolation, models, tools and limits. */
  server(options?: RequestOptions): Promise<Server> {
    return this.#transport.json({ method: 'GET', path: '/v1beta/server', repeatable: true }, options)
  }
}
