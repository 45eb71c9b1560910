"""The program of a JavaScript session.

The inspector evaluates code as a developer console does: state is kept between steps, `let` and `const` can be repeated,
`await` works anywhere, and the last expression has a value. The inspector does not know `import`, so `$import` replaces it:
import() calls always, import statements only after V8 has refused the code, and so none of it has run.
"""

NODE_SESSION = r"""
const fs = require('node:fs'), net = require('node:net')
const { Session } = require('node:inspector'), { createRequire } = require('node:module')
const { pathToFileURL } = require('node:url'), { inspect } = require('node:util')
const hidden = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })
const here = () => pathToFileURL(process.cwd() + '/').href
hidden('require', createRequire('/workspace/session.js'))
hidden('$import', (name) => import(/^\.{0,2}\//.test(name) ? new URL(name, here()).href : name))
hidden('$echo', (value) => console.log(inspect(value)))
const inspector = new Session()
inspector.connect()
const post = (method, params) => new Promise((resolve, reject) =>
  inspector.post(method, params, (error, outcome) => (error ? reject(new Error(error.message)) : resolve(outcome))))

let failed = false
const report = (text) => {
  failed = true
  console.error(text.replace(/\n    at .*(node:|session\.cjs).*|\n    at new Promise \(<anonymous>\)/g, ''))
}
const onUncaught = (error) => report(error instanceof Error ? error.stack ?? String(error) : 'Uncaught ' + inspect(error))
process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught)

const STATEMENT = /(?<=^|;)[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\*\s*as\s+([\w$]+)\s+from\s*|\{([^}]*)\}\s*from\s*|from\s*)?(['"][^'"\n]+['"])[ \t]*;?/gm
const withoutStatements = (code) => code.replace(STATEMENT, (all, name, space, list, from) => {
  const named = (list ?? '').split(',').map((part) => part.trim().replace(/\s+as\s+/, ': ')).filter(Boolean)
  const parts = (name ? ['default: ' + name] : []).concat(named)
  const target = space ?? (parts.length ? `{ ${parts.join(', ')} }` : undefined)
  return (target ? `const ${target} = ` : '') + `await $import(${from});`
})
const evaluate = (code, name) => post('Runtime.evaluate', {
  expression: code.replace(/(?<![\w$.])import\s*\(/g, '$import(') + '\n//# sourceURL=' + name,
  replMode: true, awaitPromise: true, objectGroup: 'step',
})
const run = async (code, name) => {
  failed = false
  let { result, exceptionDetails } = await evaluate(code, name)
  if (exceptionDetails?.exception?.description?.startsWith('SyntaxError: Cannot use import statement'))
    ({ result, exceptionDetails } = await evaluate(withoutStatements(code), name))
  if (exceptionDetails) {
    const { exception, text, lineNumber, columnNumber } = exceptionDetails
    const described = exception.className === 'SyntaxError' && !exception.description.includes('at ' + name)
      ? exception.description.split('\n')[0] + `\n    at ${name}:${lineNumber + 1}:${columnNumber + 1}`
      : exception.subtype === 'error' ? exception.description : text + ' ' + (exception.description ?? inspect(exception.value))
    report(described)
  } else if (result.type === 'object' && result.objectId || result.type === 'function')
    await post('Runtime.callFunctionOn', { objectId: result.objectId, functionDeclaration: 'function () { $echo(this) }' })
  else if (result.type !== 'undefined') console.log('value' in result ? inspect(result.value) : result.description)
  await post('Runtime.releaseObjectGroup', { objectGroup: 'step' })
  return failed ? 1 : 0
}

class ToolError extends Error { name = 'ToolError' }
const exchange = (method, path, body) => new Promise((resolve, reject) => {
  let sent = false
  const lost = () => reject({ sent })
  const target = { host: '127.0.0.1', port: process.env.ERRAND_MCP_PORT, method, path, agent: false }
  const request = require('node:http').request(target, (response) => {
    const chunks = []
    response.on('data', (chunk) => chunks.push(chunk)).on('error', lost).on('end', () =>
      response.complete ? resolve({ response, text: Buffer.concat(chunks).toString() }) : lost())
  })
  request.on('socket', (socket) => socket.on('connect', () => { sent = true })).on('error', lost).end(body)
})
const send = async (method, path, body, repeatable) => {
  for (const until = Date.now() + 60_000; ;) {
    const { sent, response, text } = await exchange(method, path, body).catch((lost) => lost)
    if (response?.statusCode === 200)
      return response.headers['content-type'].startsWith('application/json') ? JSON.parse(text) : text
    if (response && response.statusCode !== 429) throw new ToolError(text)
    if (!response && sent && !(await repeatable())) throw new ToolError('connection lost; the outcome is unknown')
    if (!response && Date.now() > until) throw new ToolError('no connection; the call was not made')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
const waiting = []
let running = 0
const inTurn = async (job) => {
  if (running === 6) await new Promise((resolve) => waiting.push(resolve))
  else running++
  try {
    return await job()
  } finally {
    const next = waiting.shift()
    next ? next() : running--
  }
}
const tools = () => send('GET', '/tools', undefined, () => true)
const callTool = (server, tool, args = {}) => inTurn(() =>
  send('POST', '/call', JSON.stringify({ server, tool, args }), async () =>
    (await tools()).some((each) => each.server === server && each.tool === tool && each.repeatable)))
const named = (make) => new Proxy({}, {
  get: (_, name) => typeof name === 'string' && name !== 'then' ? make(name) : undefined,
})
if (process.env.ERRAND_MCP_PORT) hidden('errand', {
  ToolError, tools, mcp: named((server) => named((tool) => (args) => callTool(server, tool, args))),
})
// What Node could not write to the pipe at once belongs to this step, not to the next one.
const flushed = (stream) => new Promise((resolve) => stream.writableLength > 0 && !stream.destroyed ? stream.write('', () => resolve()) : resolve())

const requests = new net.Socket({ fd: 3 })
let line = '', count = 0, queue = Promise.resolve()
requests.setEncoding('utf8').on('data', (data) => {
  const lines = (line + data).split('\n')
  line = lines.pop()
  for (const path of lines) queue = queue.then(async () => {
    const code = await run(fs.readFileSync(path, 'utf8'), `step-${++count}.js`).catch((error) => (onUncaught(error), 1))
    await Promise.all([process.stdout, process.stderr].map(flushed))
    fs.writeSync(4, `done ${code}\n`)
  })
}).on('end', () => process.exit(0))
"""
