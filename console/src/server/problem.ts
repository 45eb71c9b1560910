/** What went wrong, in words for people: from the server's one error body, or from there being no answer. */
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
  feature_disabled: 'Managed agents are switched off',
  not_found: 'There is nothing here',
  conflict: 'That does not go together',
  rate_limited: 'Too many calls',
  unavailable: 'The server takes no work now',
  invalid_request: 'Something in it is not right',
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
    return TITLES[this.code] ?? (this.status === 0 ? 'The server does not answer' : 'That did not work')
  }

  /** `status` 0: nothing came back at all. */
  static of(body: unknown, status: number): Problem {
    const { error, requestId } = (typeof body === 'object' && body !== null ? body : {}) as ErrorBody
    const message = error?.message ?? (status === 0 ? away() : `It answered ${status}, and nothing more.`)
    return new Problem(message, { code: error?.code ?? 'unknown', status, param: error?.param, requestId })
  }

  static from(error: unknown): Problem {
    if (error instanceof Problem) return error
    return new Problem(error instanceof TypeError ? away() : String((error as Error)?.message ?? error), {
      code: 'unknown',
      status: 0,
    })
  }
}

function away(): string {
  return `Nothing came back from ${location.host}. Is it running, and is this machine online?`
}
