/**
 * A paginated list. Await it for the first page, or iterate it for all items; further pages are fetched on demand:
 *
 *     const { items } = await errand.agents.list({ pageSize: 10 })
 *     for await (const agent of errand.agents.list()) …
 */
export interface Page<T> {
  readonly items: readonly T[]
  /** Token of the next page; absent on the last page. */
  readonly nextPageToken?: string
}

export class List<T> implements AsyncIterable<T>, PromiseLike<Page<T>> {
  readonly #read: (pageToken: string | undefined) => Promise<Page<T>>
  readonly #from: string | undefined

  /** @internal */
  constructor(from: string | undefined, read: (pageToken: string | undefined) => Promise<Page<T>>) {
    this.#from = from
    this.#read = read
  }

  // biome-ignore lint/suspicious/noThenProperty: a list is awaited for its first page.
  then<A = Page<T>, B = never>(
    onPage?: ((page: Page<T>) => A | PromiseLike<A>) | null,
    onError?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#read(this.#from).then(onPage, onError)
  }

  async *pages(): AsyncGenerator<Page<T>> {
    let token = this.#from
    do {
      const page = await this.#read(token)
      yield page
      token = page.nextPageToken
    } while (token !== undefined)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for await (const { items } of this.pages()) yield* items
  }
}

/** Converts labels to query parameters: `label.team=data`. */
export function byLabel(labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [`label.${key}`, value]))
}
