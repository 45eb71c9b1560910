/** Errors for people: from the server's error body, or because there was no answer. */
interface ErrorBody {
  readonly error?: {
    readonly code?: string
    readonly message?: string
    readonly status?: number
    readonly param?: string
    readonly details?: unknown
  }
  readonly requestId?: string
}

const TITLES: Readonly<Record<string, string>> = {
  unauthenticated: 'You are not signed in',
  feature_disabled: 'Managed agents are disabled',
  not_found: 'Not found',
  conflict: 'Conflict',
  rate_limited: 'Too many requests',
  unavailable: 'Service unavailable',
  invalid_request: 'Invalid request',
}

export class Problem extends Error {
  readonly code: string
  readonly status: number
  readonly param: string | undefined
  readonly requestId: string | undefined

  constructor(
    message: string,
    at: { readonly code: string; readonly status: number; readonly param?: string; readonly requestId?: string },
  ) {
    super(message)
    this.code = at.code
    this.status = at.status
    this.param = at.param
    this.requestId = at.requestId
  }

  get title(): string {
    return TITLES[this.code] ?? (this.status === 0 ? 'The server does not respond' : 'Something went wrong')
  }

  /** `status` 0: there was no answer. */
  static of(body: unknown, status: number): Problem {
    const { error, requestId } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody
    const message = error?.message ?? (status === 0 ? noAnswer() : `The server answered with status ${status}.`)
    return new Problem(message, { code: error?.code ?? 'unknown', status, param: error?.param, requestId })
  }

  static from(error: unknown): Problem {
    if (error instanceof Problem) return error
    return new Problem(error instanceof TypeError ? noAnswer() : String((error as Error)?.message ?? error), {
      code: 'unknown',
      status: 0,
    })
  }
}

function noAnswer(): string {
  return `${location.host} does not respond. Check that the server is running and that this device is online.`
}
