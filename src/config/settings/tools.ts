/** MCP servers, web search, the browser, and private addresses that runs can reach. */
import { isIP } from 'node:net'
import { parse as parseYaml } from 'yaml'
import { mcpServers } from '../mcp-servers.ts'
import { address, choice, filePath, list, type Setting, section, text, whole } from '../setting.ts'

function isPrivateRange(value: string): boolean {
  const cidr = /^(.+)\/(\d{1,3})(?::(\d{1,5}|\*))?$/.exec(value)
  if (cidr) {
    const version = isIP(cidr[1]!)
    if (cidr[3] !== '*' && Number(cidr[3] ?? 0) > 65535) return false
    return version !== 0 && Number(cidr[2]) <= (version === 4 ? 32 : 128)
  }
  const withPort = /^(?:\[(.+)\]|([^:]+)):(\d{1,5}|\*)$/.exec(value)
  if (withPort) return isIP(withPort[1] ?? withPort[2]!) !== 0 && (withPort[3] === '*' || Number(withPort[3]) <= 65535)
  return isIP(value) !== 0
}

export const TOOL_SETTINGS: readonly Setting[] = [
  section('mcp', {
    must: 'a map from names to MCP servers',
    schema: mcpServers,
    parse: (value) => parseYaml(value, { logLevel: 'error' }),
    fallback: {},
    doc: 'MCP servers that callers may name without an address. See [MCP servers](#mcp-servers).',
  }),
  choice('search.provider', {
    values: ['none', 'searxng', 'brave', 'tavily', 'exa', 'model'],
    fallback: 'none',
    doc: 'What `web_search` asks. `model`: the own search of the model’s provider (OpenAI, Anthropic, Google). `none`: the tool is not offered.',
  }),
  address('search.baseUrl', {
    must: 'an http or https address',
    schemes: ['http', 'https'],
    doc: 'Where the search service is, where that is not its usual place; for SearXNG always, and it may be private. SearXNG needs `json` among its `search.formats`.',
  }),
  text('search.apiKeyEnv', {
    must: 'the name of an environment variable, not the key itself',
    pattern: /^[A-Za-z_][A-Za-z0-9_]*$/,
    secret: true,
    doc: 'The environment variable with the key; default `BRAVE_API_KEY`, `TAVILY_API_KEY` or `EXA_API_KEY`.',
  }),
  whole('browser.memoryMiB', { min: 256, fallback: 1024, doc: 'Memory of one browser, MiB.' }),
  whole('browser.pids', { min: 128, fallback: 512, doc: 'Processes and threads of one browser.' }),
  text('browser.executable', {
    must: 'an absolute path',
    pattern: /^\//,
    doc: 'Chromium’s binary inside the sandboxes’ root, no wrapper script; without it the one that is found there.',
  }),
  list('egress.allowPrivate', {
    must: 'a list of addresses like 127.0.0.1:9000 or 10.1.0.0/16',
    item: isPrivateRange,
    doc: 'Private addresses that runs may reach all the same, by http too: by files by URL, and by sandboxes whose `network` allows a host there. Without a port, 80 and 443; `10.1.0.0/16:9000` opens another, `:*` all.',
  }),
  filePath('egress.caFile', {
    must: 'the path of a PEM file',
    doc: 'Certificates of authorities to trust beside the usual ones, where hosts of your own are signed by one: for connections of runs, and inside sandboxes.',
  }),
]
