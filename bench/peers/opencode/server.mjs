// opencode's own server, a compiled program, with one additional tool in its process. Its configuration and its home are in a
// separate directory, which keeps what it installs on its first start.
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const directory = join(import.meta.dirname, 'work')
mkdirSync(join(directory, '.opencode/tool'), { recursive: true })
writeFileSync(
  join(directory, '.opencode/tool/lookup.js'),
  "export default { description: 'Looks up.', args: {}, execute: async () => 'done' }\n",
)
const fake = {
  npm: '@ai-sdk/openai-compatible',
  name: 'fake',
  options: { baseURL: process.env.BENCH_PROVIDER, apiKey: 'none' },
  models: { fake: { name: 'fake', tool_call: true } },
}
const config = {
  model: 'fake/fake',
  small_model: 'fake/fake',
  share: 'disabled',
  autoupdate: false,
  snapshot: false,
  provider: { fake },
  permission: { '*': 'allow' },
}
writeFileSync(join(directory, 'opencode.json'), JSON.stringify(config))
const program = join(import.meta.dirname, `node_modules/opencode-linux-${process.arch}/bin/opencode`)
const server = spawn(program, ['serve', '--port', process.env.BENCH_PORT, '--hostname', '127.0.0.1'], {
  cwd: directory,
  env: {
    ...process.env,
    HOME: join(import.meta.dirname, 'home'),
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
  },
  stdio: 'ignore',
})
server.once('exit', (code) => process.exit(code ?? 1))
process.once('SIGTERM', () => server.kill())
