/** The example of the first start: a real task on a real file, run through the server's HTTP API. */
import { readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { createClient } from './client.ts'
import { type CliContext, paint } from './context.ts'
import { watch } from './run.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples')

interface Example {
  readonly instruction: string
  readonly tools: string[]
  /** In the same directory as the example. */
  readonly file: string
}

/** Throws if the run cannot be started. A failed run is shown and does not throw. Ctrl-C cancels it. */
export async function runExample(context: CliContext, url: string, key: string): Promise<void> {
  const { instruction, tools, file } = JSON.parse(readFileSync(join(EXAMPLES, 'first-run.json'), 'utf8')) as Example
  const content = readFileSync(join(EXAMPLES, file)).toString('base64')
  context.out.write(`${paint(context.out, 'bold', 'An example, run through the API above:')} ${instruction}\n\n`)
  const files = [{ name: basename(file), content, encoding: 'base64' as const }]
  await watch(context, await createClient(url, key), { instruction, tools, files }, { json: false })
  context.out.write(
    '\nThe server keeps running; Ctrl-C stops it. To run the example again, or a task of your own, from another terminal:\n' +
      `  ${context.command} run --file ${relative(context.cwd, join(EXAMPLES, file))} ${JSON.stringify(instruction)}\n`,
  )
}
