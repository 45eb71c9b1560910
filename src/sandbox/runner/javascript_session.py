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

const requests = new net.Socket({ fd: 3 })
let line = '', count = 0, queue = Promise.resolve()
requests.setEncoding('utf8').on('data', (data) => {
  const lines = (line + data).split('\n')
  line = lines.pop()
  for (const path of lines) queue = queue.then(async () => {
    const code = await run(fs.readFileSync(path, 'utf8'), `step-${++count}.js`).catch((error) => (onUncaught(error), 1))
    fs.writeSync(4, `done ${code}\n`)
  })
}).on('end', () => process.exit(0))
"""
