/**
 * `errand run`: runs one interaction and shows its progress. Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 cancelled, 4 no server or
 * refused, 130 after Ctrl-C.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, resolve, sep } from 'node:path'
import type { RunEvent, TerminalStatus } from '../domain/event.ts'
import type { Errand, Interaction, InteractionRequest, StreamEvent } from './client.ts'
import { type ServerOptions, withClient } from './connect.ts'
import { type CliContext, Exit, paint, printable } from './context.ts'
import { parametersFrom } from './parameter-flags.ts'
import { createTraceView, type TraceView } from './trace-view.ts'

export interface RunOptions extends ServerOptions {
  readonly file: readonly string[]
  readonly agent?: string
  readonly model?: string
  readonly tool: readonly string[]
  readonly skill: readonly string[]
  readonly system?: string
  readonly maxSeconds?: number
  readonly label: readonly string[]
  readonly out?: string
  readonly json: boolean
}

const DEFAULT_TOOLS = ['code_execution', 'file_read', 'file_write']

const EXIT_CODES: Readonly<Record<TerminalStatus, number>> = { completed: 0, failed: 1, cancelled: 3 }

/** Returns the exit code of the process. Throws Exit. */
export async function run(context: CliContext, words: readonly string[], options: RunOptions): Promise<number> {
  const instruction = words.join(' ') === '-' ? await context.readStdin() : words.join(' ')
  if (instruction.trim() === '') throw new Exit(2, 'There is no instruction. Usage: errand run "INSTRUCTION".')
  const request: InteractionRequest = {
    instruction,
    agentId: options.agent,
    model: options.model,
    systemInstruction: options.system,
    ...parametersFrom(options),
    // An agent brings its own tools; naming some replaces them.
    tools: options.tool.length > 0 ? [...options.tool] : options.agent ? undefined : DEFAULT_TOOLS,
    skills: options.skill.length > 0 ? [...options.skill] : undefined,
    files: readFiles(context, options.file),
    labels: readLabels(options.label),
    policy: options.maxSeconds === undefined ? undefined : { maxTurnDuration: options.maxSeconds },
  }
  return withClient(context, options, (client, server) =>
    watch(context, client, request, { ...options, answers: server }),
  )
}

export interface WatchOptions extends Pick<RunOptions, 'out' | 'json'> {
  /** Names the server as the subject of a sentence. With it, a line on stderr says which server and model answer. */
  readonly answers?: string
}

/** Runs a request to its end and shows it on the terminal. Returns the exit code. Throws what the client throws. */
export async function watch(
  context: CliContext,
  client: Errand,
  request: InteractionRequest,
  options: WatchOptions,
): Promise<number> {
  const view = options.json ? undefined : createTraceView(context.out)
  try {
    return await watchWith(view, context, client, request, options)
  } finally {
    view?.close()
  }
}

async function watchWith(
  view: TraceView | undefined,
  context: CliContext,
  client: Errand,
  request: InteractionRequest,
  options: WatchOptions,
): Promise<number> {
  const stream = client.interactions.stream(request, {
    onReconnect: () => view?.note('The stream broke; reconnecting.'),
  })
  const events = stream[Symbol.asyncIterator]()
  // The stream starts the run when its first event is asked for.
  const first = await events.next()
  const interactionId = stream.interactionId!
  const interruption = cancelOnSignal(context, client, interactionId, view)
  try {
    if (options.answers !== undefined) {
      context.err.write(`${options.answers} answers with ${await modelOf(client, interactionId)}\n`)
    }
    const status = await follow(first, events, view)
    const interaction = await client.interactions.retrieve(interactionId)
    if (options.json) context.out.write(`${JSON.stringify(interaction, null, 2)}\n`)
    const saved = await keepFiles(context, client, interaction, options)
    if (interruption.happened()) return 130
    return status === 'completed' && !saved ? 4 : EXIT_CODES[status]
  } finally {
    interruption.stop()
  }
}

/** Describes the model of this run, as the end of a sentence. Only names it if the server does not describe its models. */
async function modelOf(client: Errand, interactionId: string): Promise<string> {
  const [interaction, server] = await Promise.all([
    client.interactions.retrieve(interactionId),
    client.server().catch(() => undefined),
  ])
  const { model: name } = interaction.resolved
  const model = server?.models.find((each) => each.name === name)
  if (model === undefined) return `${printable(name)}.`
  const { demo, provider, source, unavailable } = model
  if (unavailable !== undefined) return printable(`${name}, which can't be called: ${unavailable}`)
  return printable(`${name} (${demo ? 'the built-in demo model' : `${provider}, from ${source}`}).`)
}

/** Shows the events up to `completed`; returns the status that it reports. */
async function follow(
  first: IteratorResult<StreamEvent>,
  rest: AsyncGenerator<StreamEvent>,
  view: TraceView | undefined,
): Promise<TerminalStatus> {
  for (let next = first; !next.done; next = await rest.next()) {
    const event = { ...next.value.data, type: next.value.event } as RunEvent
    view?.add(event)
    if (event.type === 'completed') return event.status
  }
  throw new Error('The event stream ended without `completed`.')
}

/** The first Ctrl-C cancels the run on the server and waits for its end; the second ends this process immediately. */
function cancelOnSignal(context: CliContext, client: Errand, id: string, view: TraceView | undefined) {
  let happened = false
  const stop = context.onSignal((_signal, count) => {
    if (count > 1) return context.exitNow(130)
    happened = true
    view?.note('Cancelling the run. Press Ctrl-C again to exit immediately.')
    // Fails if the run has just ended; the stream reports that end.
    client.interactions.cancel(id).catch(() => {})
  })
  return { stop, happened: () => happened }
}

/** Saves the files with `--out`, else prints their links. Returns false if a file could not be saved. */
async function keepFiles(
  context: CliContext,
  client: Errand,
  { files }: Interaction,
  { out, json }: Pick<RunOptions, 'out' | 'json'>,
): Promise<boolean> {
  const print = (text: string) => (json ? undefined : context.out.write(`${text}\n`))
  if (files.length > 0) print('')
  let all = true
  for (const file of files) {
    const what = `${printable(file.name)} ${paint(context.out, 'dim', `(${file.size ?? '?'} bytes)`)}`
    if (out === undefined) print(`${what} ${printable(file.url)}`)
    else {
      try {
        print(`${what} → ${save(resolve(context.cwd, out), file.name, await client.files.download(file))}`)
      } catch (error) {
        all = false
        context.err.write(`${printable(file.name)} could not be saved: ${(error as Error).message}\n`)
      }
    }
  }
  return all
}

/** Refuses a name that leads out of the directory: the server is not trusted. */
function save(directory: string, name: string, bytes: Uint8Array): string {
  const path = resolve(directory, name)
  if (!path.startsWith(directory.endsWith(sep) ? directory : directory + sep)) {
    throw new Error('its name leads out of the directory')
  }
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
  return path
}

function readFiles(context: CliContext, paths: readonly string[]): InteractionRequest['files'] {
  if (paths.length === 0) return undefined
  const names = new Set<string>()
  return paths.map((path) => {
    const name = basename(path)
    if (names.has(name)) throw new Exit(2, `Two files are named ${name}. In the sandbox one would overwrite the other.`)
    names.add(name)
    try {
      return { name, content: readFileSync(resolve(context.cwd, path)).toString('base64'), encoding: 'base64' }
    } catch (error) {
      throw new Exit(2, `--file ${path} can't be read (${(error as NodeJS.ErrnoException).code}).`)
    }
  })
}

function readLabels(labels: readonly string[]): Record<string, string> | undefined {
  if (labels.length === 0) return undefined
  return Object.fromEntries(
    labels.map((label) => {
      const at = label.indexOf('=')
      if (at < 1) throw new Exit(2, `--label is ${JSON.stringify(label)}; it must be KEY=VALUE.`)
      return [label.slice(0, at), label.slice(at + 1)]
    }),
  )
}
