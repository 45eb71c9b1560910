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
    doc: 'MCP servers that callers may use by name. See [MCP servers](#mcp-servers).',
  }),
  choice('search.provider', {
    values: ['none', 'searxng', 'brave', 'tavily', 'exa', 'model'],
    fallback: 'none',
    doc: 'Search service of `web_search`. `model`: the search of the model’s provider (OpenAI, Anthropic, Google). `none`: the tool is not available.',
  }),
  address('search.baseUrl', {
    must: 'an http or https address',
    schemes: ['http', 'https'],
    doc: 'Address of the search service, if it is not the public one. Required for SearXNG, which may have a private address and needs `json` among its `search.formats`.',
  }),
  text('search.apiKeyEnv', {
    must: 'the name of an environment variable, not the key itself',
    pattern: /^[A-Za-z_][A-Za-z0-9_]*$/,
    secret: true,
    doc: 'Environment variable with the key. Default: `BRAVE_API_KEY`, `TAVILY_API_KEY` or `EXA_API_KEY`.',
  }),
  whole('browser.memoryMiB', { min: 256, fallback: 1024, doc: 'Memory of a browser, in MiB.' }),
  whole('browser.pids', { min: 128, fallback: 512, doc: 'Number of processes and threads of a browser.' }),
  text('browser.executable', {
    must: 'an absolute path',
    pattern: /^\//,
    doc: 'Path of Chromium’s binary in the root file system of sandboxes. A wrapper script does not work. Default: found automatically.',
  }),
  list('egress.allowPrivate', {
    must: 'a list of addresses like 127.0.0.1:9000 or 10.1.0.0/16',
    item: isPrivateRange,
    doc: 'Private addresses that runs may reach, also by http: for files by URL, and from sandboxes whose `network` allows the host. Without a port, ports 80 and 443 are allowed; `10.1.0.0/16:9000` allows another port, `:*` all ports.',
  }),
  filePath('egress.caFile', {
    must: 'the path of a PEM file',
    doc: 'Certificates of additional authorities to trust, for hosts with certificates of your own authority. They apply to connections of runs and inside sandboxes.',
  }),
]
