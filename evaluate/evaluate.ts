/**
 * `script/evaluate`: how well, how fast and at which cost agents solve a set of real tasks, for each model and setting.
 *
 *     script/evaluate --model anthropic/claude-opus-5-5
 *     script/evaluate --model svc-3.1-pro --task code-repair --repeat 5
 *     script/evaluate --model svc-3.1-pro --setting default --setting reasoning.effort=high
 *
 * Exit code 1 if a run could not be made. A task that was not solved is a result, not an error.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ApiError, type Errand, type Interaction } from '../clients/typescript/src/index.ts'
import { markdownTable, type RunResult, svgPlot, textTable } from './report.ts'
import { openServer } from './server.ts'
import { openServices, type Services } from './services.ts'
import { DEFAULT_SETTING, parseSetting, type Setting, withSetting } from './setting.ts'
import type { Task } from './task.ts'
import { TASKS } from './tasks.ts'

const USAGE = `Usage: script/evaluate --model MODEL… [options]

  --model MODEL      a model of the server, or PROVIDER/MODEL with the provider's key in the environment; repeatable
  --task NAME        only this task; repeatable. Tasks: ${TASKS.map(({ name }) => name).join(', ')}
  --setting FIELDS   fields of the request, such as reasoning.effort=high,policy.maxCost=2; repeatable, to compare
  --repeat N         runs of each task with each model and setting (default 1)
  --config FILE      a configuration with models and prices, for the server that is started
  --out FOLDER       writes results.json, results.md and results.svg into it
  --json             prints the results as JSON
  --help             prints this

Starts a server from this checkout, or uses the one at ERRAND_BASE_URL with ERRAND_API_KEY.`

interface Options {
  readonly models: readonly string[]
  readonly tasks: readonly Task[]
  readonly settings: readonly Setting[]
  readonly repeat: number
  readonly config?: string
  readonly out?: string
  readonly json: boolean
}

/** Undefined for `--help`. Throws an error with the reason if the arguments are invalid. */
function readOptions(args: readonly string[]): Options | undefined {
  const several = { type: 'string', multiple: true, default: [] as string[] } as const
  const { values } = parseArgs({
    args: [...args],
    options: {
      model: several,
      task: several,
      setting: several,
      repeat: { type: 'string', default: '1' },
      config: { type: 'string' },
      out: { type: 'string' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const { model: models, config, out, json } = values
  if (values.help) return undefined
  if (models.length === 0) throw new Error('--model is missing.')
  const unknown = values.task.find((name) => !TASKS.some((task) => task.name === name))
  if (unknown !== undefined) throw new Error(`--task ${unknown}: there is no such task.`)
  const repeat = Number(values.repeat)
  if (!Number.isInteger(repeat) || repeat < 1)
    throw new Error(`--repeat ${values.repeat}: must be a whole number of at least 1.`)
  const tasks = TASKS.filter(({ name }) => values.task.length === 0 || values.task.includes(name))
  const settings = values.setting.length > 0 ? values.setting.map(parseSetting) : [DEFAULT_SETTING]
  return { models, tasks, settings, repeat, config, out, json }
}

async function main(options: Options): Promise<void> {
  const services = await openServices()
  const server = await openServer({ ...options, address: services.address })
  const results: RunResult[] = []
  try {
    const left = options.tasks.filter(({ needsServices }) => needsServices && !server.isOwn)
    for (const { name } of left)
      console.error(`${name} is left out: the server at ERRAND_BASE_URL cannot reach this machine`)
    for (const task of options.tasks.filter((each) => !left.includes(each)))
      for (const model of options.models)
        for (const setting of options.settings)
          for (let i = 0; i < options.repeat; i++) {
            const result = await runTask(server.client, services, task, model, setting)
            console.error(`${task.name} ${model} ${setting.name}: ${result.problem ?? 'solved'}`)
            results.push(result)
          }
  } finally {
    await server.close()
    services.close()
  }
  if (options.out !== undefined) writeResults(options.out, results)
  console.log(options.json ? JSON.stringify(results, undefined, 2) : textTable(results))
}

async function runTask(
  client: Errand,
  services: Services,
  task: Task,
  model: string,
  setting: Setting,
): Promise<RunResult> {
  const request = withSetting({ ...task.request(services), model }, setting)
  const startedAt = performance.now()
  const about = { task: task.name, model, setting: setting.name }
  try {
    const interaction = await client.interactions.create(request)
    const problem = task.grade({ output: interaction.output ?? '', files: await readFiles(client, interaction) })
    return { ...about, solved: problem === undefined, problem, ...measured(interaction) }
  } catch (error) {
    // A refused request says that the evaluation is set up wrong: another task would be refused as well.
    if (!(error instanceof ApiError) || error.interactionId === undefined) throw error
    const interaction = await client.interactions.retrieve(error.interactionId)
    const seconds = (performance.now() - startedAt) / 1_000
    return { ...about, solved: false, problem: error.message, ...measured(interaction), seconds }
  }
}

async function readFiles(client: Errand, { files }: Interaction): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const file of files ?? []) found.set(file.name, await client.files.text(file))
  return found
}

function measured({ interactionId, usage }: Interaction) {
  const { cost } = usage
  return {
    interactionId,
    turns: usage.model_calls ?? 0,
    toolCalls: usage.tool_calls ?? 0,
    inputTokens: usage.input_tokens,
    cachedTokens: usage.cached_input_tokens ?? 0,
    outputTokens: usage.output_tokens,
    ...(cost && { cost: Number(cost.amount) }),
    seconds: (usage.duration_ms ?? 0) / 1_000,
  }
}

function writeResults(folder: string, results: readonly RunResult[]): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'results.json'), `${JSON.stringify(results, undefined, 2)}\n`)
  writeFileSync(join(folder, 'results.md'), `${markdownTable(results)}\n`)
  writeFileSync(join(folder, 'results.svg'), svgPlot(results))
}

let options: Options | undefined
try {
  options = readOptions(process.argv.slice(2))
  if (!options) console.log(USAGE)
} catch (error) {
  console.error(`${(error as Error).message}\n\n${USAGE}`)
  process.exitCode = 2
}
if (options) {
  await main(options).catch((error) => {
    console.error(`The evaluation stopped: ${error.message}`)
    process.exitCode = 1
  })
}
