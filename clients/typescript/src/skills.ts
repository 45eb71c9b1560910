/** Skills: folders of instructions, scripts and references that runs use by name. */
import { listCall, objectCall } from './calls.ts'
import type { Skill, SkillFile, SkillList, SkillSummary, SkillVersionList } from './generated/types.ts'
import { List } from './paging.ts'
import type { RequestOptions, Transport } from './transport.ts'

const LIST = listCall('skills')

export class Skills {
  readonly #transport: Transport

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport
  }

  /** Uploads a zip with SKILL.md at its root or in its only top-level folder. New content under the same name becomes the next version. */
  upload(zip: Uint8Array<ArrayBuffer> | ArrayBuffer | Blob, options?: RequestOptions): Promise<Skill> {
    return this.#transport.json({ ...LIST, method: 'POST', body: zip, type: 'application/zip' }, options)
  }

  /** `pdf` returns the newest version, `pdf@3` that version. */
  async retrieve(name: string, options?: RequestOptions): Promise<Skill> {
    return this.#transport.json(objectCall('skills.retrieve', name), options)
  }

  list(
    { pageToken, ...query }: { order?: 'asc' | 'desc'; pageSize?: number; pageToken?: string } = {},
    options?: RequestOptions,
  ): List<SkillSummary> {
    return new List(pageToken, async (token) => {
      const { skills, nextPageToken } = await this.#transport.json<SkillList>(
        { ...LIST, query: { ...query, pageToken: token } },
        options,
      )
      return { items: skills, nextPageToken }
    })
  }

  versions(name: string, { pageToken, ...query }: { pageSize?: number; pageToken?: string } = {}): List<SkillSummary> {
    const call = objectCall('skills.versions', name, '/versions')
    return new List(pageToken, async (token) => {
      const { versions, nextPageToken } = await this.#transport.json<SkillVersionList>({
        ...call,
        query: { ...query, pageToken: token },
      })
      return { items: versions, nextPageToken }
    })
  }

  /** Returns a file of the newest or the named version, with `text` if it is text of at most 256 KiB. */
  async file(name: string, path: string, options?: RequestOptions): Promise<SkillFile> {
    return this.#transport.json({ ...objectCall('skills.file', name, '/file'), query: { path } }, options)
  }

  /** Deletes all versions, or the named one. */
  async delete(name: string, options?: RequestOptions): Promise<void> {
    await this.#transport.send({ ...objectCall('skills.delete', name), method: 'DELETE', repeatable: false }, options)
  }
}
