/** Generates the configuration reference (docs/configuration.md) from the table of settings. */
import { PROVIDER_NAMES } from '../models/providers/registry.ts'
import type { Setting } from './setting.ts'
import { OTHER_VARIABLES, SETTINGS } from './settings.ts'

const INTRODUCTION = `# Configuration

<!-- Generated from src/config/settings.ts by \`errand config reference\`. A test compares the two. -->

Every setting has a default. To change one, set it in \`errand.yaml\` ([example](../errand.example.yaml)) or in the environment,
which overrides the file. \`errand config check\` reads both and reports all errors at once.

- A dot in a setting's name is a map in the file: \`limits.runningPerProject\` is \`limits: {runningPerProject: 10}\`.
- The tables list each setting's environment variable below its name.
- Relative paths in \`errand.yaml\` are relative to that file, and those in the environment to the current directory.
- An unknown name in either place is an error, so that a typo never disables a limit.
`

const MODELS = `## Models

\`\`\`yaml config env=MODEL_KEY,ANTHROPIC_API_KEY
models:
  svc-3.5-flash:                  # the name that callers use
    provider: openai-compatible   # or ${PROVIDER_NAMES.filter((name) => name !== 'openai-compatible').join(', ')}
    baseUrl: http://127.0.0.1:4010/v1
    model: some-model             # the provider's own name
    apiKeyEnv: MODEL_KEY          # the environment variable with the key, never the key itself
    price: {input: 0.3, output: 2.5, cachedInput: 0.03, cacheWrite: 0.38}   # US dollars per million tokens
    vision: false                 # whether it accepts images
    documents: false              # whether it accepts whole PDFs
    maxTries: 3                   # attempts of a call until its first fragment
    contextWindow: 200000         # tokens of prompt and answer; default: what is known of the model
    idleTimeoutS: 60              # seconds without data after which a call has stalled
    sendReasoning: false          # whether reasoning is sent back as reasoning_content (openai-compatible, openrouter)
    cache: auto                   # off: no cache breakpoints, no cache key
    reasoning: {effort: low}      # defaults of the parameters of a run: none, low, medium, high or max
    temperature: 0.5              # 0 to 2
    verbosity: low                # low, medium or high
    maxOutputTokens: 8192         # maximum output tokens of one call
    headers: {X-Team: research}   # additional headers of each request
    headersEnv: {X-Key: MODEL_KEY}          # the same, with values from environment variables
    extraBody: {top_k: 20}        # merged into the body of each request
    fallbacks: [svc-3.1-pro]      # called in this order if this model fails before any output
  svc-3.1-pro: {provider: anthropic, model: claude-opus-5-5, price: {input: 4, output: 20}}
\`\`\`

\`cachedInput\` and \`cacheWrite\` are the prices of input that is read from and written to the provider's prompt cache; each is
\`input\` by default.

With \`cache: auto\`, prompts for Claude (Anthropic, Bedrock, OpenRouter) and Amazon Nova have cache breakpoints. Requests to
OpenAI, Azure, Mistral, OpenRouter and xAI have a key that is the same for the whole conversation. Google, DeepSeek, Groq and
most compatible servers cache by themselves. \`openai-compatible\` gets no such field, since some servers refuse fields that they
do not know. \`usage\` reports what was read from the cache and written to it.

\`sendReasoning\` is true by default for DeepSeek's and Kimi's models, and for the addresses of DeepSeek and Moonshot: they refuse
a tool's result if the reasoning before its call is missing. Most other servers ignore the field; some refuse it.

Which model accepts which of \`reasoning\`, \`temperature\` and \`verbosity\`: [Models and providers](models.md#reasoning-effort-temperature-verbosity).
\`extraBody\` cannot have the fields of the conversation, such as \`model\`, \`messages\`, \`tools\` and \`stream\`.

\`provider\` and \`model\` are required, and \`baseUrl\` with \`openai-compatible\`. \`azure\` needs \`baseUrl\` or the variable
\`AZURE_RESOURCE_NAME\`. Each provider has a default for \`apiKeyEnv\` ([Models and providers](models.md#configure-models)). In the environment, \`ERRAND_MODELS\` holds
the same map as JSON or YAML and replaces the file's.

What happens if a call fails:

- **Retry.** The server makes up to \`maxTries\` attempts, with exponential backoff and jitter, and never before the provider's
  \`Retry-After\`.
- **Circuit breaker.** After five consecutive failures a provider is not called for 10 seconds, later for up to a minute, until one
  trial call succeeds. Meanwhile calls of its models fail, or use the fallback, immediately. Each process counts for itself.
- **Fallback.** The interaction's \`warnings\` report it, and its tokens are billed at its own price. An answer that has begun is never
  started again by another model.
`

const BLOBS = `## Files in a bucket

\`\`\`yaml config each-line
blobsUrl: s3://bucket/prefix                                        # Amazon S3; the region from AWS_REGION or ?region=eu-central-1
blobsUrl: s3://bucket?endpoint=https://minio.internal:9000          # any store that speaks S3
blobsUrl: file:///mnt/shared/errand                                 # a directory, which may be shared
\`\`\`

The AWS SDK finds the credentials: \`AWS_ACCESS_KEY_ID\` and \`AWS_SECRET_ACCESS_KEY\`, the files in \`~/.aws\`, a
web identity, or the machine's role. They need \`s3:GetObject\`, \`s3:PutObject\`, \`s3:DeleteObject\`, \`s3:AbortMultipartUpload\`
on objects below the prefix, and \`s3:ListBucket\`. At its start the server writes and deletes a small file, as a check. Set
\`pathStyle=false\` for an \`endpoint\` that requires the bucket's name in the host name.

The server serves the files itself, by its own signed addresses, so the bucket can be private. Use a prefix for one database
only: the server deletes objects below it that the database does not know, after an hour. Add a lifecycle rule that aborts
incomplete multipart uploads after a day, because a server that is killed during an upload leaves parts behind.
`

const BUCKETS = `## Files by s3:// and gs://

Callers name an object (\`{"name": "a.csv", "url": "s3://team-data/in/a.csv"}\`), and the server reads it with your
credentials. It reads only buckets that you list, for all projects or for one.

\`\`\`yaml not-run="its key file is looked for"
files:
  s3:
    allow: [public-data, shared/inputs]     # a whole bucket; the objects below shared/inputs/
    region: eu-central-1
    accessKeyIdEnv: FILES_KEY_ID            # default: the credentials that the AWS SDK finds
    secretAccessKeyEnv: FILES_KEY
  gs:
    allow:
      '*': [public-data]                    # every project
      prj_01a2b3…: [team-data]              # one project (\`errand keys create\` prints its id)
    credentialsFile: google-reader.json
\`\`\`

Use credentials that may only read. The server signs each address for five minutes and fetches it like any other file by URL,
with the same egress checks and limits. It never shows or stores the signed address.
`

const MCP = `## MCP servers

\`\`\`yaml config env=TRACKER_TOKEN,NOTES_TOKEN
mcp:
  tracker:                        # callers send {"name": "tracker"} without an address
    url: https://mcp.example.com/mcp
    authentication: {type: bearer, tokenEnv: TRACKER_TOKEN}   # the environment variable, never the token itself
    allowedTools: [search, get_issue]                         # tools that callers may use
    requireApproval: [get_issue]                              # or always; a caller can add tools, but not remove any
  notes:
    command: [node, /opt/notes/index.js]   # speaks MCP on stdin and stdout
    mounts: [{source: /srv/notes-server, target: /opt/notes}]
    env: {NOTES_MODE: read}
    envFrom: [NOTES_TOKEN]                 # variables that are copied from the server's environment
    network: [api.notes.example]           # allowed hosts, or public; default: none
    limits: {memoryMiB: 256, cpus: 0.5, pids: 64}
\`\`\`

\`authentication\` is one of \`{type: bearer, tokenEnv}\`, \`{type: headers, headersEnv: {X-Api-Key: VARIABLE}}\`,
\`{type: basic, username, passwordEnv}\` and \`{type: oauth2, tokenUrl, clientId, clientSecretEnv, refreshTokenEnv, accessTokenEnv,
scopes}\`. If it is not set, callers may send their own.

A command runs in a separate sandbox, which is created for each run and removed with it. It reaches the hosts in \`network\` through
the proxy in its variable \`HTTPS_PROXY\`. The values of \`env\` and \`envFrom\` exist only in that sandbox, never in the one where
the model's code runs. The program itself can misuse them, so register only programs that you trust.
`

/** Section titles by the first part of a setting's path; settings without a dot come first. */
const GROUPS: Readonly<Record<string, string>> = {
  '': 'The server',
  tls: 'TLS',
  console: 'The console',
  sandbox: 'Sandboxes',
  search: 'Web search',
  browser: 'The browser',
  egress: 'Outbound connections',
  files: 'Input files',
  metrics: 'Metrics',
  limits: 'Limits',
}

export function configReference(): string {
  const others = Object.entries(OTHER_VARIABLES).map(([name, doc]) => `| \`${name}\` | ${doc} |`)
  return [
    INTRODUCTION,
    '## Settings\n',
    ...groups().flatMap(([title, settings]) => [
      `### ${title}\n`,
      '| Setting | Default | Description |',
      '|---|---|---|',
      ...settings.map(row),
      '',
    ]),
    MODELS,
    BLOBS,
    BUCKETS,
    MCP,
    '## Other variables\n',
    '| Variable | Description |',
    '|---|---|',
    ...others,
    '',
  ].join('\n')
}

function groups(): [string, Setting[]][] {
  const byMap = Map.groupBy(SETTINGS, ({ path }) => (path.includes('.') ? path.split('.')[0]! : ''))
  return [...byMap].map(([name, settings]) => [GROUPS[name] ?? name, settings])
}

function row(setting: Setting): string {
  const { path, env, must, doc } = setting
  return `| \`${path}\`<br>\`${env}\` | ${shownDefault(setting)} | ${doc}<br>_${must[0]?.toUpperCase()}${must.slice(1)}._ |`
}

function shownDefault({ fallback }: Setting): string {
  if (fallback === undefined) return 'none'
  if (typeof fallback === 'boolean') return fallback ? 'on' : 'off'
  if (typeof fallback === 'object') return 'empty'
  return `\`${fallback}\``
}
