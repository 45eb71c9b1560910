/**
 * The frame of a run: the part of its model requests before the messages. Providers cache it and bind reasoning to it, so it
 * is stored as sent, and a resumed run sends the stored frame. An upgraded server or another list of an MCP server does not
 * change a running conversation. Only a tool list that changes while a worker has it open starts a new frame.
 */
import { isDeepStrictEqual } from 'node:util'
import type { RunSpec } from '../../domain/interaction.ts'
import { describeNetwork } from '../../domain/network.ts'
import type { ModelDescription, ModelRequest, ToolDefinition } from '../../models/port.ts'
import { insertFrameStatement, type StoredFrame } from '../../store/frames.ts'
import type { EngineDependencies } from '../dependencies.ts'
import type { Run } from '../run/run.ts'
import type { Toolbox } from './toolbox.ts'

export type RequestFrame = Pick<ModelRequest, 'system' | 'tools' | 'responseFormat' | 'search'>

export interface RunFrame {
  /** The frame of requests to this model. */
  for(entry: Pick<ModelDescription, 'searches'>): RequestFrame
  /** Starts a new frame if the tools have changed. Resolves when the change is durable. */
  refresh(): Promise<void>
}

/** `note`: the text that was added to the instruction. */
export function createFrame(
  { db, inside }: Pick<EngineDependencies, 'db' | 'inside'>,
  { claim, spec, past, recorder }: Pick<Run, 'claim' | 'spec' | 'past' | 'recorder'>,
  toolbox: Pick<Toolbox, 'definitions' | 'about'>,
  note: string,
): RunFrame {
  let listed = toolbox.definitions()
  let frame: StoredFrame = past.frame ?? { prompt: promptOf(spec, inside, toolbox.about), note, tools: listed }
  const { responseFormat } = spec
  const stored = frame
  if (!past.frame && mayUseTools(spec))
    recorder.attach((atSeq) => insertFrameStatement(db, claim.id, atSeq, stored), 'with the next events')

  return {
    for: ({ searches }) => ({
      system: joined([spec.systemInstruction, frame.prompt]) || undefined,
      tools: frame.tools,
      responseFormat,
      search: searches === true && spec.tools.includes('web_search'),
    }),
    async refresh() {
      const current = toolbox.definitions()
      if (current.length === listed.length && current.every((tool, i) => tool === listed[i])) return
      listed = current
      const change = changeOf(frame.tools, current)
      if (Object.values(change).every((names) => names.length === 0)) return
      const next = { ...frame, tools: current }
      frame = next
      recorder.append({ type: 'tools_changed', ...change })
      recorder.attach((atSeq) => insertFrameStatement(db, claim.id, atSeq, next))
      await recorder.flush()
    },
  }
}

/** The frame of a run without tools follows from its spec, so it is not stored. */
export function mayUseTools({ tools, mcp, skills }: Pick<RunSpec, 'tools' | 'mcp' | 'skills'>): boolean {
  return tools.length + mcp.length + skills.length > 0
}

/** `about`: the introductions of the run's tools. */
function promptOf(spec: RunSpec, inside: string, about: readonly string[]): string {
  return joined([spec.tools.length > 0 ? surroundings(spec, inside) : undefined, ...about])
}

function surroundings({ network, policy }: RunSpec, inside: string): string {
  const { maxTurnDuration, maxOutputTokens, maxCost } = policy
  const cost = maxCost === undefined ? '' : `, $${maxCost}`
  return [
    'You work in a temporary, isolated Linux sandbox that belongs to this task alone and is thrown away at its end.',
    `The working directory is /workspace. Inside: ${inside}. ${describeNetwork(network)}`,
    'Files that you write to /workspace/outputs/ are given to the caller.',
    `Limits of the whole task: ${maxTurnDuration} s, ${maxOutputTokens} output tokens${cost}.`,
    METHOD,
  ].join('\n')
}

const METHOD = `How to work:
- Inspect what is there before you change or compute anything.
- Act in small steps, and read each result before the next step.
- Verify your results before you answer.
- Write files for the caller to /workspace/outputs/.
- In your answer, say what is missing or uncertain.`

/** The text that is added to a run's instruction: the list of its files. */
export function fileList({ inputFiles }: Pick<RunSpec, 'inputFiles'>): string {
  if (inputFiles.length === 0) return ''
  const list = inputFiles.map((file) => `- ${file.name} (${file.size.toLocaleString('en-US')} bytes)`)
  return `\n\nFiles in the working directory:\n${list.join('\n')}`
}

/**
 * The text after the instruction of a run: that of its frame; for a new run with tools, its files and the day of its
 * acceptance. Runs that began before frames existed have no date.
 */
export function instructionNote({ claim, spec, past }: Pick<Run, 'claim' | 'spec' | 'past'>): string {
  if (past.frame) return past.frame.note
  if (!mayUseTools(spec) || past.turns.length > 0) return fileList(spec)
  const [day] = new Date(claim.createdAt).toISOString().split('T')
  return `${fileList(spec)}\n\nToday is ${day} (UTC).`
}

function joined(parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== '').join('\n\n')
}

/** The names of the tools that differ. Tools in another order are the same. */
function changeOf(before: readonly ToolDefinition[], after: readonly ToolDefinition[]) {
  const [old, current] = [before, after].map((tools) => new Map(tools.map((tool) => [tool.name, tool])))
  const names = (tools: readonly ToolDefinition[]) => tools.map(({ name }) => name)
  return {
    added: names(after.filter(({ name }) => !old!.has(name))),
    removed: names(before.filter(({ name }) => !current!.has(name))),
    changed: names(after.filter((tool) => old!.has(tool.name) && !isDeepStrictEqual(old!.get(tool.name), tool))),
  }
}
