/** The server that an evaluation works with: its own, from this checkout, or the one at ERRAND_BASE_URL. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { end, launch, said } from '../bench/processes.ts'
import { Errand } from '../clients/typescript/src/index.ts'

export interface EvaluationServer {
  readonly client: Errand
  /** True if the server runs on this machine and reaches the evaluation's services. */
  readonly isOwn: boolean
  close(): Promise<void>
}

export interface ServerOptions {
  /** `NAME` of the server's catalog, or `PROVIDER/MODEL`. */
  readonly models: readonly string[]
  /** A configuration file with `models`. */
  readonly config?: string
  /** Address of the services, which runs may reach. */
  readonly address: string
}

const ERRAND = join(import.meta.dirname, '../script/errand')

export async function openServer(options: ServerOptions): Promise<EvaluationServer> {
  const { ERRAND_BASE_URL: baseUrl, ERRAND_API_KEY: apiKey } = process.env
  if (baseUrl) return { client: new Errand({ baseUrl, apiKey }), isOwn: false, close: async () => {} }
  const dataDir = mkdtempSync(join(tmpdir(), 'errand-evaluate-'))
  const file = join(dataDir, 'errand.yaml')
  writeFileSync(file, stringify(configuration(options)))
  const env = { ...process.env, ERRAND_CONFIG: file, ERRAND_DATA_DIR: dataDir, ERRAND_PORT: '0' }
  const log = join(dataDir, 'stderr')
  const child = launch(ERRAND, ['serve'], { env, log })
  const [, url, key] = await said(child, /(http:\/\/[\d.:]+)[\s\S]*?(errand_sk_\w{38})/).catch((error) => {
    throw new Error(`The server did not start. ${error.message}\n${readFileSync(log, 'utf8')}`)
  })
  return {
    client: new Errand({ baseUrl: url, apiKey: key }),
    isOwn: true,
    async close() {
      await end(child)
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

function configuration({ models, config, address }: ServerOptions): object {
  const given = config === undefined ? {} : ((parse(readFileSync(config, 'utf8')) ?? {}) as Record<string, object>)
  const named = models.filter((name) => name.includes('/') && !(given.models && name in given.models))
  const entries = named.map((name) => {
    const [provider = '', ...model] = name.split('/')
    return [name, { provider, model: model.join('/') }] as const
  })
  const all = { ...given.models, ...Object.fromEntries(entries) }
  return {
    log: 'warn',
    ...given,
    ...(Object.keys(all).length > 0 && { models: all }),
    egress: { ...given.egress, allowPrivate: [address] },
  }
}
