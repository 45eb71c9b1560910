/** Generates the configuration reference (docs/configuration.md) from the table of settings. */
import { PROVIDER_NAMES } from '../models/providers/registry.ts'
import type { Setting } from './setting.ts'
import { OTHER_VARIABLES, SETTINGS } from './settings.ts'

const INTRODUCTION = `# Configuration

<!-- Made from src/config/settings.ts by \`errand config reference\`; a test keeps the two the same. -->

Nothing needs to be configured. What is, stands in \`errand.yaml\` (an example: [errand.example.yaml](../errand.example.yaml)),
in the environment, or in both; the environment wins. \`errand config check\` reads both and tells every problem at once.

Relative paths in \`errand.yaml\` are relative to that file, those in the environment to the current directory.
A setting's name with a dot is a map in the file: \`limits.runningPerProject\` is \`limits: {runningPerProject: 10}\`.
Under each stands its variable in the environment.
A name that does not exist is a problem in both places, so that a typo does not quietly turn a limit off.
`

const MODELS = `## Models

\`\`\`yaml config env=MODEL_KEY,ANTHROPIC_API_KEY
models:
  svc-3.5-flash:                  # the name that callers use
    provider: openai-compatible   # or ${PROVIDER_NAMES.filter((name) => name !== 'openai-compatible').join(', ')}
    baseUrl: http://127.0.0.1:4010/v1
    model: some-model             # the provider's own name
    apiKeyEnv: MODEL_KEY          # the environment variable with the key; the key itself never stands here
    price: {input: 0.3, output: 2.5, cachedInput: 0.03, cacheWrite: 0.38}   # US dollars per million tokens
    vision: false                 # whether images may be put before it
    documents: false              # whether PDFs may be, whole
    maxTries: 3                   # tries of a call before its first fragment
    idleTimeoutS: 60              # seconds of silence after which a call counts as stalled
    sendReasoning: false          # whether reasoning is sent back as reasoning_content (openai-compatible, openrouter)
    cache: auto                   # off: no cache breakpoints, no cache key
    fallbacks: [svc-3.1-pro]      # other names, asked in this order where this one fails before it has said anything
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

\`provider\` and \`model\` are required, and \`baseUrl\` with \`openai-compatible\`. \`azure\` needs \`baseUrl\` or the variable
\`AZURE_RESOURCE_NAME\`. Each provider has a default for \`apiKeyEnv\` ([Models and providers](models.md#configure-models)). In the environment, \`ERRAND_MODELS\` holds
the same map as JSON or YAML and replaces the file's.

A call that fails is tried again, \`maxTries\` in all, with growing random waits and never before the provider's
\`Retry-After\`. A provider whose calls failed five times in a row is left alone for 10 seconds, then up to a minute, until one
trial call has shown that it is back: meanwhile its models fail, or fall back, at once. Each process keeps its own count. A fallback is
told in the interaction's \`warnings\`, and its tokens cost what it costs; an answer that has begun is never begun again by another model.
`

const BLOBS = `## Files in a bucket

\`\`\`yaml config each-line
blobsUrl: s3://bucket/prefix                                        # Amazon S3; the region from AWS_REGION or ?region=eu-central-1
blobsUrl: s3://bucket?endpoint=https://minio.internal:9000          # any store that speaks S3
blobsUrl: file:///mnt/shared/errand                                 # a directory, which may be shared
\`\`\`

Credentials are found as the AWS SDK finds them: \`AWS_ACCESS_KEY_ID\` and \`AWS_SECRET_ACCESS_KEY\`, the files in \`~/.aws\`, a
web identity, the machine's role. They need \`s3:GetObject\`, \`s3:PutObject\`, \`s3:DeleteObject\`, \`s3:AbortMultipartUpload\`
on what lies below the prefix, and \`s3:ListBucket\`. At the start a small file is written and removed. \`pathStyle=false\` is for a
store with an \`endpoint\` that wants the bucket's name in the host's.

Files are handed out by this server, with its own signed addresses and headers: the bucket can stay wholly private. A
prefix belongs to one database: what that does not know is removed after an hour. Give the bucket a lifecycle rule that
ends multipart uploads that were left unfinished for a day: a server that was killed in the middle of one leaves its parts.
`

const BUCKETS = `## Files by s3:// and gs://

Callers name the object (\`{"name": "a.csv", "url": "s3://team-data/in/a.csv"}\`), and the credentials that read it are
yours: so nothing is read that you did not list, by everyone or by project.

\`\`\`yaml not-run="its key file is looked for"
files:
  s3:
    allow: [public-data, shared/inputs]     # a bucket; what lies below shared/inputs/
    region: eu-central-1
    accessKeyIdEnv: FILES_KEY_ID            # without the two: what the AWS SDK finds
    secretAccessKeyEnv: FILES_KEY
  gs:
    allow:
      '*': [public-data]                    # every project
      prj_01a2b3…: [team-data]              # this one (\`errand keys create\` says the id)
    credentialsFile: google-reader.json
\`\`\`

Give the credentials leave to read and nothing else. Each address is signed for five minutes and fetched through the same
guard as any file by URL, within the same limits; the signed address is shown and stored nowhere.
`

const MCP = `## MCP servers

\`\`\`yaml config env=TRACKER_TOKEN,NOTES_TOKEN
mcp:
  tracker:                        # callers write {"name": "tracker"}, and no address
    url: https://mcp.example.com/mcp
    authentication: {type: bearer, tokenEnv: TRACKER_TOKEN}   # the variable, never the token itself
    allowedTools: [search, get_issue]                         # the most that a caller may use
    requireApproval: [get_issue]                              # or always; a caller can ask for more, not for less
  notes:
    command: [node, /opt/notes/index.js]   # speaks MCP on stdin and stdout
    mounts: [{source: /srv/notes-server, target: /opt/notes}]
    env: {NOTES_MODE: read}
    envFrom: [NOTES_TOKEN]                 # variables of this server's environment that it is given
    network: [api.notes.example]           # what it may reach, through the guard; or public; by itself nothing
    limits: {memoryMiB: 256, cpus: 0.5, pids: 64}
\`\`\`

\`authentication\` is one of \`{type: bearer, tokenEnv}\`, \`{type: headers, headersEnv: {X-Api-Key: VARIABLE}}\`,
\`{type: basic, username, passwordEnv}\` and \`{type: oauth2, tokenUrl, clientId, clientSecretEnv, refreshTokenEnv, accessTokenEnv,
scopes}\`. Without it, callers may send their own.

A command runs in a sandbox of its own beside the run's, fresh for each run and gone with it. Its way out is the proxy that
\`HTTPS_PROXY\` names in its environment, which opens what \`network\` lists. What \`env\` and
\`envFrom\` give it is in that sandbox alone, never in the one where the model's code runs; the program can do with it what
it likes, so register programs that you trust with it.
`

/** Section titles by the first part of a setting's path; settings without a dot come first. */
const GROUPS: Readonly<Record<string, string>> = {
  '': 'The server',
  tls: 'TLS',
  console: 'The console',
  sandbox: 'Sandboxes',
  search: 'Web search',
  browser: 'The browser',
  egress: 'The way out',
  files: 'Files of callers',
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
      '| setting | default | what it is |',
      '|---|---|---|',
      ...settings.map(row),
      '',
    ]),
    MODELS,
    BLOBS,
    BUCKETS,
    MCP,
    '## Other variables\n',
    '| variable | what it is |',
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
