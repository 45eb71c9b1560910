/** The configuration of a server, as the rooms read it. src/config/read-config.ts makes it from `errand.yaml` and the environment. */
import type { BlobsLocation } from './blobs/port.ts'
import type { BucketSettings } from './buckets/port.ts'
import type { Limits, SandboxLimits } from './domain/limits.ts'
import type { RequireApproval } from './domain/mcp.ts'
import type { Network } from './domain/network.ts'
import type { Price } from './domain/usage.ts'
import type { ProviderName } from './models/providers/registry.ts'
import type { DriverChoice } from './sandbox/drivers.ts'

export interface ModelConfig {
  readonly provider: ProviderName
  /** The provider's own name for the model. */
  readonly model: string
  readonly baseUrl?: string
  /** The environment variable that holds the key; the key itself never stands in the file. */
  readonly apiKeyEnv?: string
  readonly price?: Price
  /** Whether the model can be shown images. */
  readonly vision?: boolean
  /** Whether it takes PDFs whole. */
  readonly documents?: boolean
  /** Tries for a call before its first fragment. */
  readonly maxTries?: number
  /** Seconds without a byte after which a call counts as stalled. */
  readonly idleTimeoutS?: number
  /** Whether reasoning is sent back, with `openai-compatible`. Default: for models that refuse a call without it. */
  readonly sendReasoning?: boolean
  /** `off`: prompts are sent without cache breakpoints and cache keys. Default `auto`. */
  readonly cache?: 'auto' | 'off'
  /** Names of other models that are asked, in this order, where this one fails before it has said anything. */
  readonly fallbacks?: readonly string[]
}

/** How a registered MCP server is signed in to. Fields that end in `Env` name environment variables. */
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
  /** The most that a caller may use; undefined: all. */
  readonly allowedTools?: readonly string[]
  /** A caller can ask for more approval than this, not for less. */
  readonly requireApproval?: RequireApproval
}

/** An MCP server that callers name without an address. */
export type McpServerConfig =
  | (McpRules & { readonly url: string; readonly authentication?: McpAuthentication })
  | (McpRules & {
      /** Runs in a sandbox of its own. */
      readonly command: readonly string[]
      readonly env: Readonly<Record<string, string>>
      /** Variables of this server's environment that it is given too. */
      readonly envFrom: readonly string[]
      /** Directories of this machine that it sees, read-only. */
      readonly mounts: readonly { readonly source: string; readonly target: string }[]
      /** What it may reach through the guard. */
      readonly network: Network
      readonly limits: Partial<Pick<SandboxLimits, 'memoryMiB' | 'cpus' | 'pids'>>
    })

export interface Config {
  readonly host: string
  readonly port: number
  /** How callers reach this server; links to files begin with it. Undefined: by the address it listens at. */
  readonly publicUrl: string | undefined
  /** Whose `X-Forwarded-For` is believed: addresses and ranges. */
  readonly trustedProxies: readonly string[]
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly dataDir: string
  /** The operator's skills. Undefined: none by folder. */
  readonly skillsDir: string | undefined
  /** `postgres://…`; undefined: SQLite in the data dir. */
  readonly databaseUrl: string | undefined
  /** Where LISTEN works, where `databaseUrl` goes through a pooler that breaks it. */
  readonly databaseListenUrl: string | undefined
  /** Connections to Postgres at most. */
  readonly databasePool: number
  /** Where files are kept: by `blobsUrl`, or in the data dir. */
  readonly blobs: BlobsLocation
  /** Key hashes, signatures and the vault hang on it. Undefined: made once in the data dir. Always there with `databaseUrl`. */
  readonly secret: string | undefined
  /** What this process does; one that is not `all` shares its database with others. */
  readonly role: 'all' | 'api' | 'worker'
  /** Whether the built-in demo model may stand in where no real model is configured or found. */
  readonly demo: boolean
  readonly leaseS: number
  /** How long SIGTERM waits for running interactions before it hands them over, seconds. */
  readonly drainS: number
  readonly log: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Interactions that this process works on at once, all projects together. */
  readonly workerSlots: number
  readonly sandbox: SandboxLimits &
    DriverChoice & {
      /** Warm sandboxes kept ready. */
      readonly pool: number
      readonly maxOpen: number
      /** The most that runs may ask for. */
      readonly network: Network
      readonly networkBytes: number
    }
  /** What a browser's own sandbox may use, where that is not as `sandbox` has it. */
  readonly browser: {
    readonly memoryMiB: number
    readonly pids: number
    /** Undefined: what the sandbox's self-test found. */
    readonly executable: string | undefined
  }
  readonly limits: Limits
  /** Empty: known environment keys, then local model servers, then the demo model. In the order of the file. */
  readonly models: Readonly<Record<string, ModelConfig>>
  readonly defaultModel: string
  /** By the names that callers use. */
  readonly mcp: Readonly<Record<string, McpServerConfig>>
  /** What `web_search` asks. `model`: the models' own search, where their provider has one. */
  readonly search: {
    readonly provider: 'none' | 'searxng' | 'brave' | 'tavily' | 'exa' | 'model'
    /** There where the service is not where it usually is; always with SearXNG. */
    readonly baseUrl?: string
    /** The environment variable that holds the key; the key itself never stands in the file. */
    readonly apiKeyEnv?: string
  }
  readonly egress: {
    /** `10.1.0.0/16`, `127.0.0.1:9000`: private addresses that runs may reach all the same. */
    readonly allowPrivate: readonly string[]
    /** PEM certificates of authorities to trust beside the usual ones. */
    readonly caFile: string | undefined
  }
  /** Buckets that callers may name files in. */
  readonly files: BucketSettings & {
    /** `text/csv`, `image/*`: what a file by URL may be. Empty: anything. */
    readonly types: readonly string[]
  }
  readonly console: {
    /** Whether anybody may make an account. */
    readonly signUp: boolean
    /** A provider to sign in with, where `issuer` is set; `clientId` is then, too. */
    readonly oidc: {
      readonly issuer?: string
      readonly clientId?: string
      readonly clientSecret?: string
      /** What the button says. */
      readonly name: string
    }
  }
  readonly metrics: { readonly port: number | undefined; readonly key: string | undefined }
}
