/**
 * Scenarios that every client must pass, whatever its language. Each client's own program runs each scenario against a real
 * server, through a proxy that injects the planned faults, and must print the same result.
 */
import { expect } from 'vitest'
import { ERRORS } from '../../src/domain/errors.ts'
import type { Plan } from './unreliable-proxy.ts'

export interface Scenario {
  /** Faults for the client's requests, in order. */
  readonly plans?: readonly Plan[]
  /** Expected output of the client's program. */
  readonly result: unknown
  /** Expected requests as `METHOD path`; not checked if absent. */
  readonly requests?: readonly unknown[]
  /** Expected number of interactions whose instruction contains the text. */
  readonly interactions?: readonly [instruction: string, count: number]
}

/** Names of output files that must not be saved. The directory has `a.txt`, `b/c/d.txt`, and two symbolic links out of it. */
export const HOSTILE_NAMES = [
  ...['', '.', '..', '../outside/x', 'b/../../../outside/x', './x', 'b/', 'b//x', '/tmp/errand-outside', '//x'],
  ...['..\\outside\\x', 'b\\x', 'C:x', 'c:\\x', 'C:/x', 'x\0', 'x\0/../y'],
  ...['link/x', 'link', 'link.txt', 'b', 'b/c', 'a.txt/x', 'a.txt'],
]

const STREAM = 'POST /v1beta/interactions:stream'
const GET_INTERACTION = /^GET \/v1beta\/interactions\/int_\w+$/
const ANALYST = 'GET /v1beta/agents/analyst'
/** Answer of the run with a tool. */
const TOOL_RUN = 'It is 42.'
const TOOL_EVENTS = expectAll('reasoning_started', 'tool_call', 'tool_result', 'partial_output', 'completed')
const GAPLESS = { gapless: true }

/** Matches a list that contains all of these. */
function expectAll(...names: string[]) {
  return { holds: names }
}

const invalid = { error: 'InvalidRequestError', code: 'invalid_request', status: 400, failed: false, retryable: false }
const notFound = { error: 'NotFoundError', code: 'not_found', status: 404, failed: false, retryable: false }
const toolRun = { ids: GAPLESS, names: TOOL_EVENTS, text: TOOL_RUN, last: 'completed' }
const modelError = { error: 'ModelError', code: 'model_error', status: 500, failed: true, retryable: false }
const signature = { error: 'WebhookSignatureError' }
const aborted = { error: 'AbortedError' }
const pascal = (code: string) => code.replaceAll(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())
const busy = (status: number, code: string, seconds: number): Plan => ({
  status,
  headers: { 'content-type': 'application/json', 'retry-after': String(seconds) },
  body: JSON.stringify({ error: { code, message: 'Later.', status, retryable: true }, requestId: 'req_1' }),
})

export const SCENARIOS: Readonly<Record<string, Scenario>> = {
  create: {
    result: { status: 'completed', output: TOOL_RUN, steps: ['reasoning', 'tool_call', 'tool_result'], counted: true },
  },
  stream: { result: toolRun, requests: [STREAM] },
  text: { result: 'Hello, world.' },
  final: { result: { output: 'Hello, world.', same: true, last: true } },
  events: { result: { all: { above: 3 }, rest: { from: 3 }, text: 'Hello, world.' } },

  // The connection breaks.
  'stream-cut': {
    plans: [{ cutAfterEvents: 2 }, { cutAfterEvents: 1 }, 'refuse', { cutAfterEvents: 1 }, busy(503, 'unavailable', 1)],
    result: toolRun,
    interactions: ['[works]', 1],
  },
  'create-cut': { plans: [{ cutAfterEvents: 1 }, 'lose-answer'], result: TOOL_RUN, interactions: ['[works]', 1] },
  restart: {
    result: { ids: GAPLESS, names: TOOL_EVENTS, text: 'Awake.', last: 'completed' },
    interactions: ['[slow tool]', 1],
  },
  'answer-lost': { plans: ['lose-answer', 'refuse'], result: 'Hello, world.', interactions: ['[speaks]', 1] },
  'start-refused': {
    plans: ['refuse', 'lose-answer'],
    result: { in: ['running', 'completed'] },
    interactions: ['[speaks]', 1],
  },

  // The server is busy.
  'retry-429': { plans: [busy(429, 'rate_limited', 1)], result: 'analyst', requests: [ANALYST, ANALYST] },
  'retry-503': { plans: [busy(503, 'unavailable', 1)], result: 'after-503' },
  'proxy-502': { plans: [{ status: 502 }, { status: 504 }], result: 'analyst', requests: [ANALYST, ANALYST, ANALYST] },
  // The stream succeeds; the request for the final interaction is cut.
  'answer-cut': {
    plans: ['pass', 'cut-answer', 'refuse', 'refuse', 'refuse', 'refuse', 'refuse'],
    result: 'Hello, world.',
    interactions: ['[speaks]', 1],
  },
  'no-repeat': { plans: ['lose-answer'], result: { error: 'ConnectionError' }, requests: ['POST /v1beta/agents'] },
  'give-up': {
    plans: [{ status: 500 }, { status: 500 }],
    result: { error: 'ApiError', code: 'http_500', status: 500, failed: false, retryable: true },
    requests: [ANALYST, ANALYST],
  },
  'other-server': {
    plans: [{ status: 200 }, { status: 200 }],
    result: { call: { error: 'ConnectionError' }, stream: { error: 'ConnectionError' } },
    requests: [ANALYST, STREAM],
  },
  'time-out': { plans: ['silence'], result: { error: 'TimeoutError' }, requests: [ANALYST] },

  // It refuses.
  'error-invalid': { result: { ...invalid, param: 'instruction' }, requests: [STREAM] },
  'error-key': {
    result: { error: 'UnauthenticatedError', code: 'unauthenticated', status: 401, failed: false, retryable: false },
  },
  'error-not-found': { result: { ...notFound, param: 'agentId' } },
  // A class of its own for each code that the server has.
  'error-classes': {
    plans: Object.entries(ERRORS).map(([code, { status }]) => busy(status, code, 0)),
    result: Object.keys(ERRORS).map((code) => `${pascal(code.replace(/_error$/, ''))}Error`),
  },
  'error-conflict': {
    result: { error: 'ConflictError', code: 'conflict', status: 409, param: 'id', failed: false, retryable: false },
  },
  'error-etag': {
    result: {
      error: 'PreconditionFailedError',
      code: 'precondition_failed',
      status: 412,
      param: 'If-Match',
      failed: false,
      retryable: false,
    },
  },
  'error-idempotency': {
    result: {
      same: true,
      other: {
        error: 'IdempotencyMismatchError',
        code: 'idempotency_mismatch',
        status: 422,
        failed: false,
        retryable: false,
      },
    },
  },
  'error-strict': { result: { ...invalid, param: 'skills[0]' } },
  'error-cancel': {
    result: { error: 'ConflictError', code: 'conflict', status: 409, failed: false, retryable: false },
  },

  // The run ends in another way.
  'run-fails': { result: modelError },
  // The client never starts a failed run again by itself; the caller's next call with the same key starts one new run.
  'run-fails-retryably': {
    result: { first: { ...modelError, retryable: true }, second: { output: 'Hello, world.', replaces: true } },
    requests: [STREAM, expect.stringMatching(GET_INTERACTION), STREAM, expect.stringMatching(GET_INTERACTION)],
    interactions: ['[flaky]', 2],
  },
  'stream-fails': { result: { error: true, last: 'completed', final: modelError } },
  'run-deadline': {
    result: { error: 'DeadlineExceededError', code: 'deadline_exceeded', status: 504, failed: true, retryable: false },
  },
  cancel: { result: { status: 'cancelled', waited: 'cancelled' } },
  'abort-goes-on': { result: { error: aborted, status: 'running' } },
  'abort-cancels': { result: { error: aborted, status: 'cancelled' } },
  'leave-loop': { result: TOOL_RUN },
  'unknown-event': {
    plans: [
      { insert: 'id: 1\nevent: stage\ndata: {}\n\n: a comment\n\nid: 2\nevent: news_of_tomorrow\ndata: {"a":1}\n\n' },
    ],
    result: {
      ids: GAPLESS,
      names: expectAll('news_of_tomorrow', 'completed'),
      text: 'Hello, world.',
      last: 'completed',
    },
  },

  // The rest of the API.
  paging: { result: { ids: ['paged-0', 'paged-1', 'paged-2', 'paged-3', 'paged-4'], first: 2, more: true } },
  agents: {
    result: { version: 2, labels: { a: '1' }, cleared: true, versions: [2, 1], first: 'One.', gone: notFound },
  },
  files: { result: { names: ['out.bin', 'out.txt'], same: true, text: 'Grüße 🙂' } },
  save: {
    result: {
      saved: ['a.txt', 'b/c/d.txt'],
      text: 'deep',
      again: 2,
      refused: Object.fromEntries(HOSTILE_NAMES.map((name) => [name, { error: 'ErrandError' }])),
      left: ['in', 'in/side', 'in/side/a.txt', 'in/side/b', 'in/side/b/c', 'in/side/b/c/d.txt']
        .concat(['in/side/link', 'in/side/link.txt', 'outside'])
        .sort(),
    },
  },
  'file-corrupt': { plans: ['pass', 'pass', 'corrupt'], result: { error: 'ErrandError' } },
  skills: { result: { name: 'greeting', again: true, text: true, names: ['greeting'], gone: notFound } },
  credentials: { result: { id: 'tracker', secret: false, gone: notFound } },
  list: { result: { found: 1, gone: notFound } },
  // No call is sent: without its id, it would be another one.
  'missing-ids': {
    result: {
      accepted: [],
      methods: expectAll(
        'interactions.retrieve',
        'interactions.cancel',
        'agents.versions',
        'skills.file',
        'files.download',
      ),
      retrieve: {
        matches:
          /^interactions\.retrieve: (id|interaction_id) is missing; pass the interaction's id, for example int_\w+\.$/,
      },
    },
    requests: [],
  },
  server: { result: true },
  webhook: {
    result: {
      type: 'interaction.completed',
      bytes: 'interaction.completed',
      tampered: signature,
      unsigned: signature,
      old: signature,
      other: signature,
    },
  },
}
