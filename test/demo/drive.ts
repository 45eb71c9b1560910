/** Runs the demo model as the engine does, turn by turn, with the real tools in a real sandbox, until it answers. */
import { afterAll } from 'vitest'
import { createDemoModel } from '../../src/demo/demo.ts'
import type { ToolName } from '../../src/domain/agent.ts'
import type { JsonSchema } from '../../src/domain/interaction.ts'
import { type Message, toolCalls, userText } from '../../src/domain/message.ts'
import type { ModelOutcome } from '../../src/models/port.ts'
import { type Sandbox, SandboxError } from '../../src/sandbox/port.ts'
import { createTools } from '../../src/tools/tools.ts'
import { LIMITS, never, openWorld, type World } from '../sandbox/fixture.ts'

export interface Driven {
  readonly output: string
  readonly reasoning: readonly string[]
  readonly calls: readonly {
    readonly name: string
    readonly args: Readonly<Record<string, unknown>>
    readonly output: string
  }[]
  /** The files under outputs/. */
  readonly outputs: ReadonlyMap<string, string>
  readonly messages: readonly Message[]
  readonly last: Extract<ModelOutcome, { ok: true }>
}

export interface DriveOptions {
  readonly files?: Readonly<Record<string, string>>
  readonly tools?: readonly ToolName[]
  readonly history?: readonly Message[]
  readonly responseFormat?: JsonSchema
}

const ALL: readonly ToolName[] = ['code_execution', 'file_read', 'file_write']
const MAX_TURNS = 10
const OUTPUT_BYTES = 100_000

let world: Promise<World> | undefined
afterAll(async () => (await world)?.close())

export async function drive(instruction: string, options: DriveOptions = {}): Promise<Driven> {
  world ??= openWorld({ limits: { ...LIMITS, outputBytes: OUTPUT_BYTES } })
  const sandbox = await (await world).sandbox(undefined, { ...LIMITS, outputBytes: OUTPUT_BYTES })
  try {
    for (const [name, content] of Object.entries(options.files ?? {})) {
      await sandbox.writeFile(name, Buffer.from(content), 'write')
    }
    return await converse(instruction, options, sandbox)
  } finally {
    await sandbox.destroy()
  }
}

async function converse(instruction: string, options: DriveOptions, sandbox: Sandbox): Promise<Driven> {
  const { files = {}, tools: enabled = ALL, history = [], responseFormat } = options
  const tools = new Map([...createTools()].filter(([name]) => (enabled as readonly string[]).includes(name)))
  const messages: Message[] = [...history, userText(instruction + fileList(files))]
  const reasoning: string[] = []
  const calls: Driven['calls'][number][] = []
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const said = { text: '', reasoning: '' }
    const last = await createDemoModel().call(
      { messages, tools: [...tools.values()].map((tool) => tool.definition), maxOutputTokens: 100_000, responseFormat },
      (delta) => {
        if (delta.type === 'text' || delta.type === 'reasoning') said[delta.type] += delta.text
      },
      never,
    )
    if (!last.ok) throw new Error(last.failure.message)
    reasoning.push(said.reasoning)
    messages.push(last.message)
    const called = toolCalls(last.message)
    if (called.length === 0) {
      return { output: said.text, reasoning, calls, outputs: await outputsOf(sandbox), messages, last }
    }
    if (said.text !== '') throw new Error(`text before a tool call: ${said.text}`)
    for (const { callId, name, args = {} } of called) {
      const context = {
        sandbox: async () => sandbox,
        key: callId,
        remainingMs: () => 60_000,
        maxToolMs: 60_000,
        onOutput: () => {},
        signal: never,
        vision: false,
        documents: false,
        outputBytes: OUTPUT_BYTES,
      }
      const { output } = await tools.get(name as ToolName)!.run(args, context)
      calls.push({ name, args, output })
      messages.push({ role: 'tool', callId, name, output })
    }
  }
  throw new Error(`no answer after ${MAX_TURNS} turns`)
}

/** The list of input files, in the engine's form. */
function fileList(files: Readonly<Record<string, string>>): string {
  const list = Object.entries(files).map(
    ([name, content]) => `- ${name} (${Buffer.byteLength(content).toLocaleString('en-US')} bytes)`,
  )
  return list.length === 0 ? '' : `\n\nFiles in the working directory:\n${list.join('\n')}`
}

async function outputsOf(sandbox: Sandbox): Promise<Map<string, string>> {
  const outputs = new Map<string, string>()
  try {
    for (const { path } of (await sandbox.list('outputs', { recursive: true, maxEntries: 100 })).entries) {
      outputs.set(path, Buffer.from(await sandbox.readFile(`outputs/${path}`, OUTPUT_BYTES)).toString('utf8'))
    }
  } catch (error) {
    if (!(error instanceof SandboxError && error.code === 'not_found')) throw error
  }
  return outputs
}
