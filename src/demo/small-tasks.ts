/** Tasks without a data file: arithmetic, sequences, given code, writing a file, listing files, searching the web. */
import { evaluate } from './arithmetic.ts'
import { answer, failed, needs, runPython, writeText } from './moves.ts'
import { counted } from './numbers.ts'
import { readFacts } from './python.ts'
import { type Sequence, sequenceCode } from './sequence.ts'
import type { Task, Work } from './task.ts'

/** Computes in the sandbox if it may. The result is the same without. */
export function* arithmeticTask(expression: string, tools: ReadonlySet<string>): Work {
  const own = evaluate(expression)
  if (!own.ok) {
    return { ...answer('That has no result.', `I can't compute ${expression}: ${own.problem}.`), failed: true }
  }
  let value = own.value
  if (tools.has('code_execution')) {
    const code = `import json

result = ${expression}
print(json.dumps({"value": f"{result:.12g}" if isinstance(result, float) else str(result)}))
`
    const output = yield runPython(`The expression is ${expression}. Python computes it exactly.`, code)
    const computed = readFacts(output)?.value
    if (typeof computed !== 'string') return failed(`compute ${expression}`, output)
    value = /e/.test(computed) ? String(Number(computed)) : computed
  }
  const facts = [{ names: ['result', 'value', 'answer', 'sum', 'number', 'total'], value: Number(value) }]
  return answer('I have the result.', `${expression} = ${value}`, facts)
}

export function* sequenceTask(sequence: Sequence, tools: ReadonlySet<string>): Work {
  if (!tools.has('code_execution')) return needs('code_execution', `compute the ${sequence.name}`)
  const output = yield runPython(`I compute the ${sequence.name} with a few lines of Python.`, sequenceCode(sequence))
  const numbers = readFacts(output)?.numbers as readonly string[] | undefined
  if (!numbers) return failed(`compute the ${sequence.name}`, output)
  const shown = `${numbers.slice(0, 200).join(', ')}${numbers.length > 200 ? ', …' : ''}`
  const list = numbers.map((number) => ({ value: Number(number), number: Number(number) }))
  return answer('I have the numbers.', `The ${sequence.name}: ${shown}`, [
    { names: ['numbers', 'list', 'values', 'results'], value: list },
    { names: ['last', 'result', 'value', 'number'], value: Number(numbers.at(-1)) },
  ])
}

export function* codeTask({ language, code }: Extract<Task, { kind: 'run_code' }>, tools: ReadonlySet<string>): Work {
  if (!tools.has('code_execution')) return needs('code_execution', 'run code')
  const thought = `The instruction has a block of ${language}. I run it as it is.`
  const output = yield { thought, tool: 'code_execution', args: { language, code } }
  const broke = /\[It was (stopped|ended)|\[It ended with exit code|\[The sandbox was lost/.test(output)
  const shown = output.trim().replace(/^/gm, '    ')
  const facts = [{ names: ['output', 'result', 'stdout', 'value'], value: output.trim() }]
  return broke
    ? { ...answer('The code failed.', `The ${language} code failed. Its output:\n\n${shown}`, facts), failed: true }
    : answer('The code ran.', `The ${language} code ran. Its output:\n\n${shown}`, facts)
}

/** Writes the file and reads it back, so that the answer reports what is there. */
export function* writeTask({ path, content }: Extract<Task, { kind: 'write_file' }>, tools: ReadonlySet<string>): Work {
  if (!tools.has('file_write') && !tools.has('code_execution')) return needs('file_write', `write ${path}`)
  const { done, output } = yield* writeText(tools, path, content)
  if (!done) return failed(`write ${path}`, output)
  if (tools.has('file_read')) {
    const read = yield { thought: 'I read it back to be sure.', tool: 'file_read', args: { path } }
    if (!read.includes(content.trim().split('\n')[0]!.slice(0, 80))) return failed(`read ${path} back`, read)
  }
  const size = Buffer.byteLength(content)
  return answer('The file is there.', `I wrote ${path} (${counted(size, 'byte')}):\n\n${content.trim()}`, [
    { names: ['file', 'path', 'name'], value: path },
    { names: ['bytes', 'size'], value: size },
  ])
}

/** Passes on what the search found: the demo model does not understand it. */
export function* searchTask(query: string, tools: ReadonlySet<string>): Work {
  if (!tools.has('web_search')) return needs('web_search', 'search the web')
  const output = yield { thought: 'I ask the search service.', tool: 'web_search', args: { query } }
  const [header = '', ...found] = output.split('\n\n')
  if (found.length === 0) return answer('There is nothing to show.', `I searched for “${query}”. ${header}`)
  const results = found.map((result) => {
    const [title = '', url = ''] = result.split('\n').map((line) => line.trim())
    return { title: title.replace(/^\d+\. /, ''), url: url.replace(/ \(.*\)$/, '') }
  })
  const facts = [{ names: ['results', 'pages', 'list'], value: results }]
  return answer('I have results.', `A search for “${query}” finds:\n\n${found.join('\n\n')}`, facts)
}

const LIST_CODE = `import json, os

files = []
for folder, _, names in os.walk("."):
    for name in names:
        path = os.path.relpath(os.path.join(folder, name), ".")
        if not path.startswith("."):
            files.append([path, os.path.getsize(path)])
files.sort()
print(json.dumps({"count": len(files), "files": files[:100]}))
`

export function* listTask(tools: ReadonlySet<string>): Work {
  if (!tools.has('code_execution')) return needs('code_execution', 'list files')
  const output = yield runPython('I list the files of the working directory.', LIST_CODE)
  const facts = readFacts(output) as { count: number; files: [string, number][] } | undefined
  if (!facts) return failed('list the files', output)
  const lines = facts.files.map(([name, size]) => `- ${name} (${counted(size, 'byte')})`)
  const text = `The working directory has ${counted(facts.count, 'file')}${lines.length > 0 ? `:\n\n${lines.join('\n')}` : '.'}`
  return answer('I have the list.', text, [
    { names: ['count', 'number', 'total'], value: facts.count },
    { names: ['files', 'names', 'list'], value: facts.files.map(([name, size]) => ({ name, size })) },
  ])
}
