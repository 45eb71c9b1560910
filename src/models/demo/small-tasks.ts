/** Tasks that need no data file: arithmetic, running given code, writing a file, listing and showing files. */
import { evaluate } from './arithmetic.ts'
import { answer, failed, needs, runPython, writeText } from './moves.ts'
import { counted } from './numbers.ts'
import { readFacts } from './python.ts'
import { sequenceCode } from './sequence.ts'
import type { Fact, Task, Work } from './task.ts'

type Kind<K extends Task['kind']> = Extract<Task, { kind: K }>

/** The sandbox computes where it may; the answer is the same without it. */
export function* arithmeticTask({ expression, save }: Kind<'arithmetic'>, tools: ReadonlySet<string>): Work {
  const own = evaluate(expression)
  if (!own.ok) return answer('That has no result.', `I can't work out ${expression}: ${own.problem}.`)
  let value = own.value
  let how = 'Worked out without a tool.'
  if (tools.has('code_execution')) {
    const code = `import json\n\nresult = ${expression}\nprint(json.dumps({"value": f"{result:.12g}" if isinstance(result, float) else str(result)}))\n`
    const output = yield runPython(`The expression is ${expression}. Python works it out exactly.`, code)
    const computed = readFacts(output)?.value
    if (typeof computed !== 'string') return failed(`compute ${expression}`, output)
    value = /e/.test(computed) ? String(Number(computed)) : computed
    how = 'Python has worked it out.'
  }
  const facts = [{ names: ['result', 'value', 'answer', 'sum', 'number', 'total'], value: Number(value) }]
  if (!save) return answer(how, `${expression} = ${value}`, facts)
  if (!tools.has('file_write') && !tools.has('code_execution')) return needs('file_write', `write ${save}`)
  const { done, output } = yield* writeText(tools, save, `${expression} = ${value}\n`)
  if (!done) return failed(`write ${save}`, output)
  return answer('Computed and saved.', `${expression} = ${value}\n\nThe result is saved in ${save}.`, facts)
}

export function* sequenceTask({ sequence, save }: Kind<'sequence'>, tools: ReadonlySet<string>): Work {
  if (!tools.has('code_execution')) return needs('code_execution', `compute ${sequence.name}`)
  const output = yield runPython(`I compute ${sequence.name} with a few lines of Python.`, sequenceCode(sequence))
  const result = readFacts(output)?.result
  if (typeof result !== 'string' && !Array.isArray(result)) return failed(`compute ${sequence.name}`, output)
  const numbers = (Array.isArray(result) ? result : [result]).map(String)
  const said = sequence.name.startsWith('whether ')
    ? `${sequence.name.replace(/^whether (\d+) is/, '$1 is')}: ${result === 'True' ? 'yes' : 'no'}.`
    : `${sequence.name[0]!.toUpperCase()}${sequence.name.slice(1)}: ${numbers.slice(0, 200).join(', ')}${numbers.length > 200 ? ', …' : ''}`
  const facts: Fact[] = [
    {
      names: ['result', 'value', 'answer', 'sum', 'number', 'total'],
      value: result === 'True' || result === 'False' ? result === 'True' : Number(numbers.at(-1)),
    },
    {
      names: ['numbers', 'list', 'values', 'results'],
      value: numbers.map((number) => ({ value: Number(number), number: Number(number) })),
    },
  ]
  if (!save) return answer('Python has worked it out.', said, facts)
  const { done, output: told } = yield* writeText(tools, save, `${numbers.join('\n')}\n`)
  if (!done) return failed(`write ${save}`, told)
  return answer('Computed and saved.', `${said}\n\nThe result is saved in ${save}.`, facts)
}

export function* codeTask({ language, code }: Kind<'run_code'>, tools: ReadonlySet<string>): Work {
  if (!tools.has('code_execution')) return needs('code_execution', 'run code')
  const output = yield {
    thought: `The instruction holds a block of ${language}. I run it as it stands.`,
    tool: 'code_execution',
    args: { language, code },
  }
  const ended = /\[It was (stopped|ended)|\[It ended with exit code|\[The sandbox was lost/.test(output)
  const shown = output
    .trim()
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')
  const facts = [{ names: ['output', 'result', 'stdout', 'value'], value: output.trim() }]
  return ended
    ? answer('It did not end as it should.', `The ${language} code did not run through. It said:\n\n${shown}`, facts)
    : answer('It ran through.', `The ${language} code ran through. Its output:\n\n${shown}`, facts)
}

/** Writes, then reads back what is there: an answer that says "written" should have seen it. */
export function* writeTask({ path, content, what }: Kind<'write_file'>, tools: ReadonlySet<string>): Work {
  if (!tools.has('file_write') && !tools.has('code_execution')) return needs('file_write', `write ${path}`)
  const written = yield* writeText(tools, path, content)
  if (!written.done) return failed(`write ${path}`, written.output)
  const size = Buffer.byteLength(content)
  const facts = [
    { names: ['file', 'path', 'name'], value: path },
    { names: ['bytes', 'size'], value: size },
  ]
  if (!tools.has('file_read'))
    return answer(
      'It is written.',
      `I wrote ${what} to ${path} (${counted(size, 'byte')}):\n\n${content.trim()}`,
      facts,
    )
  const read = yield { thought: 'I read it back to be sure.', tool: 'file_read', args: { path } }
  if (!read.includes(content.trim().split('\n')[0]!.slice(0, 80))) return failed(`read ${path} back`, read)
  return answer(
    'It is there.',
    `I wrote ${what} to ${path} (${counted(size, 'byte')}) and read it back:\n\n${content.trim()}`,
    facts,
  )
}

/** What was found is passed on as it is: this model understands none of it. */
export function* searchTask({ query }: Kind<'search'>, tools: ReadonlySet<string>): Work {
  if (!tools.has('web_search')) return needs('web_search', 'search the web')
  const output = yield { thought: 'I ask the search service.', tool: 'web_search', args: { query } }
  const [header = '', ...found] = output.split('\n\n')
  if (found.length === 0) return answer('There is nothing to show.', `I searched for “${query}”. ${header}`)
  const results = found.map((result) => {
    const [title = '', url = ''] = result.split('\n').map((line) => line.trim())
    return { title: title.replace(/^\d+\. /, ''), url: url.replace(/ \(.*\)$/, '') }
  })
  const facts = [{ names: ['results', 'pages', 'list'], value: results }]
  return answer('That is what was found.', `A search for “${query}” finds:\n\n${found.join('\n\n')}`, facts)
}

export function* listTask(tools: ReadonlySet<string>): Work {
  if (!tools.has('code_execution')) {
    if (!tools.has('file_read')) return needs('file_read', 'list files')
    const listing = yield { thought: 'I list the working directory.', tool: 'file_read', args: { path: '.' } }
    return answer('That is the list.', `The working directory holds:\n\n${listing.replace(/^\[.*\]\n/, '')}`)
  }
  const code = `import json, os

files = []
for folder, _, names in os.walk("."):
    for name in names:
        path = os.path.relpath(os.path.join(folder, name), ".")
        if not path.startswith("."):
            files.append([path, os.path.getsize(path)])
files.sort()
print(json.dumps({"count": len(files), "bytes": sum(size for _, size in files), "files": files[:100]}))
`
  const output = yield runPython('I list the files of the working directory.', code)
  const facts = readFacts(output) as { count: number; bytes: number; files: [string, number][] } | undefined
  if (!facts) return failed('list the files', output)
  if (facts.count === 0)
    return answer('There is nothing.', 'The working directory holds no files.', [
      { names: ['count', 'files', 'number'], value: 0 },
    ])
  const lines = facts.files.map(([name, size]) => `- ${name} (${counted(size, 'byte')})`)
  return answer(
    'That is the list.',
    `The working directory holds ${counted(facts.count, 'file')}, ${counted(facts.bytes, 'byte')} in all:\n\n${lines.join('\n')}`,
    [
      { names: ['count', 'number', 'total'], value: facts.count },
      { names: ['files', 'names', 'list'], value: facts.files.map(([name, size]) => ({ name, size })) },
    ],
  )
}

export function* showTask({ file, lines }: Kind<'show_file'>, tools: ReadonlySet<string>): Work {
  if (tools.has('file_read')) {
    const args = lines === undefined ? { path: file } : { path: file, endLine: lines }
    const output = yield { thought: `I read ${file}.`, tool: 'file_read', args }
    return answer('This is what it holds.', `${file}:\n\n${indented(output.replace(/^\[.*\]\n/, ''))}`)
  }
  if (!tools.has('code_execution')) return needs('file_read', `read ${file}`)
  const code = `with open(${JSON.stringify(file)}, encoding="utf-8", errors="replace") as file:
    for at, line in enumerate(file):
        if at == ${lines ?? 100}:
            break
        print(line.rstrip("\\n")[:500])
`
  const output = yield runPython(
    `I print ${lines === undefined ? 'the beginning' : `the first ${counted(lines, 'line')}`} of ${file}.`,
    code,
  )
  return answer('This is what it holds.', `${file}:\n\n${indented(output)}`)
}

function indented(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')
}
