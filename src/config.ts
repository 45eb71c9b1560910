/** The configuration of a server, as the rooms read it. src/config/read-config.ts makes it from `errand.yaml` and the environment. */
import type { BlobsLocation } from './blobs/port.ts'
import type { BucketSettings } from './buckets/port.ts'
import type { Limits, SandboxLimits } from './domain/limits.ts'
import type { RequireApproval } from './domain/mcp.ts'
import type { ModelParameters } from './domain/model-parameters.ts'
import type { Network } from './domain/network.ts'
import type { Price } from './domain/usage.ts'
import type { ProviderName } from './models/providers/registry.ts'
import type { DriverChoice } from './sandbox/drivers.ts'

export interface ModelConfig extends ModelParameters {
  readonly provider: ProviderName
  /** Name of the model at the provider. */
  readonly model: string
  readonly baseUrl?: string
  /** Name of the environment variable that holds the key; the file never contains the key itself. */
  readonly apiKeyEnv?: string
  readonly price?: Price
  /** Whether the model accepts images. */
  readonly vision?: boolean
  /** Whether the model accepts PDF files. */
  readonly documents?: boolean
  /** Maximum number of attempts of a call, before its first fragment. */
  readonly maxTries?: number
  /** Idle timeout of a call, in seconds. */
  readonly idleTimeoutS?: number
  /** Whether to send reasoning back to the model (`openai-compatible`, `openrouter`). Default: only to models that require it. */
  readonly sendReasoning?: boolean
  /** Maximum output tokens of one call. Default: what the run has left, up to what the model accepts. */
  readonly maxOutputTokens?: number
  /** Additional HTTP headers of its requests. */
  readonly headers?: Readonly<Record<string, string>>
  /** Additional headers whose values are in environment variables, by name of the header. */
  readonly headersEnv?: Readonly<Record<string, string>>
  /** Fields that are merged into the body of its requests. */
  readonly extraBody?: Readonly<Record<string, unknown>>
  /** `off` sends prompts without cache breakpoints and cache keys. Default: `auto`. */
  readonly cache?: 'auto' | 'off'
  /** Tokens of prompt and answer together. Default: what is known of the model. */
  readonly contextWindow?: number
  /** Fallback models, in order, if this one fails before its first fragment. */
  readonly fallbacks?: readonly string[]
}

/** Authentication at a registered MCP server. Fields that end in `Env` name environment variables. */
export type McpAuthentication =
  | { readonly type: 'bearer'; readonly tokenEnv: string }
  | { readonly type: 'headers'; readonly headersEnv: Readonly<Record<string, string>> }
  | { readonly type: 'basic'; readonly username: string; readonly passwordEnv: string }
  | {
      readonly type: 'oauth2'
      readonly tokenUrl?: string
      readonly clientId?: string
      readonly clientSecretEnv?: string
      readonly refreshTokenEnv?: string
      readonly accessTokenEnv?: string
      readonly scopes?: readonly string[]
    }

interface McpRules {
  /** Allowlist of tools for callers; undefined: all tools. */
  readonly allowedTools?: readonly string[]
  /** Minimum approval: a caller can require more, not less. */
  readonly requireApproval?: RequireApproval
}

/** A registered MCP server, which callers use by name. */
export type McpServerConfig =
  | (McpRules & { readonly url: string; readonly authentication?: McpAuthentication })
  | (McpRules & {
      /** Program and arguments. It runs in a sandbox of its own. */
      readonly command: readonly string[]
      readonly env: Readonly<Record<string, string>>
      /** Variables of the server's environment to pass on. */
      readonly envFrom: readonly string[]
      /** Directories of this machine, mounted read-only. */
      readonly mounts: readonly { readonly source: string; readonly target: string }[]
      /** Hosts that it can reach through the egress guard. */
      readonly network: Network
      readonly limits: Partial<Pick<SandboxLimits, 'memoryMiB' | 'cpus' | 'pids'>>
    })

export interface Config {
  readonly host: string
  readonly port: number
  /** Address at which callers reach this server; links to files begin with it. Undefined: the address it listens on. */
  readonly publicUrl: string | undefined
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies: readonly string[]
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly dataDir: string
  /** Directory of the operator's skills. Undefined: there are none. */
  readonly skillsDir: string | undefined
  /** `postgres://…`; undefined: SQLite in the data directory. */
  readonly databaseUrl: string | undefined
  /** Direct connection for LISTEN, if `databaseUrl` leads through a pooler. */
  readonly databaseListenUrl: string | undefined
  /** Maximum number of connections to Postgres. */
  readonly databasePool: number
  /** Location of stored files: from `blobsUrl`, else in the data directory. */
  readonly blobs: BlobsLocation
  /** Key hashes, signatures and the vault depend on it. Undefined: created in the data directory. Required with `databaseUrl`. */
  readonly secret: string | undefined
  /** Role of this process. `api` and `worker` share a database with other nodes. */
  readonly role: 'all' | 'api' | 'worker'
  /** Whether to use the built-in demo model if no other model is configured or found. */
  readonly demo: boolean
  readonly leaseS: number
  /** Time that running interactions have to end after SIGTERM before they are requeued, in seconds. */
  readonly drainS: number
  readonly log: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Maximum number of interactions that this process runs at once, for all projects together. */
  readonly workerSlots: number
  readonly sandbox: SandboxLimits &
    DriverChoice & {
      /** Number of warm sandboxes kept ready. */
      readonly pool: number
      readonly maxOpen: number
      /** Upper limit of the network access that runs can request. */
      readonly network: Network
      readonly networkBytes: number
    }
  /** Limits of a browser's sandbox that differ from `sandbox`. */
  readonly browser: {
    readonly memoryMiB: number
    readonly pids: number
    /** Path of Chromium. Undefined: the one that the self-test found. */
    readonly executable: string | undefined
  }
  readonly limits: Limits
  /** Models by name, in the order of the file. Empty: the server uses known API keys of the environment, else a local model server, else the demo model. */
  readonly models: Readonly<Record<string, ModelConfig>>
  readonly defaultModel: string
  /** MCP servers by the names that callers use. */
  readonly mcp: Readonly<Record<string, McpServerConfig>>
  /** Service behind `web_search`. `model`: the search of the model's provider. */
  readonly search: {
    readonly provider: 'none' | 'searxng' | 'brave' | 'tavily' | 'exa' | 'model'
    /** Address of the service. Required for SearXNG; the others have a default. */
    readonly baseUrl?: string
    /** Name of the environment variable that holds the key; the file never contains the key itself. */
    readonly apiKeyEnv?: string
  }
  readonly egress: {
    /** Private addresses that runs can reach, for example `10.1.0.0/16` or `127.0.0.1:9000`. */
    readonly allowPrivate: readonly string[]
    /** PEM file of additional certificate authorities. */
    readonly caFile: string | undefined
  }
  /** Buckets from which callers can use files. */
  readonly files: BucketSettings & {
    /** Media types allowed for files by URL, for example `text/csv` or `image/*`. Empty: all. */
    readonly types: readonly string[]
  }
  readonly console: {
    /** Whether anyone who reaches the console can create an account. */
    readonly signUp: boolean
    /** OpenID Connect provider. Disabled without `issuer`; with it `clientId` is set too. */
    readonly oidc: {
      readonly issuer?: string
      readonly clientId?: string
      readonly clientSecret?: string
      /** Label of the sign-in button. */
      readonly name: string
    }
  }
  readonly metrics: { readonly port: number | undefined; readonly key: string | undefined }
}
