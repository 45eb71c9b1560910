/** Skills: folders of instructions, scripts and references that runs can be given by name. */
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

  /** `zip`: with SKILL.md at its root or in its one top folder. Another content under the same name is the next version; the same one, the same. */
  upload(zip: Uint8Array<ArrayBuffer> | ArrayBuffer | Blob, options?: RequestOptions): Promise<Skill> {
    return this.#transport.json({ ...LIST, method: 'POST', body: zip, type: 'application/zip' }, options)
  }

  /** `pdf`: its newest version; or `pdf@3`. */
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

  /** A file of the newest version, or of the one that is named; its `text`, where it is text of at most 256 KiB. */
  async file(name: string, path: string, options?: RequestOptions): Promise<SkillFile> {
    return this.#transport.json({ ...objectCall('skills.file', name, '/file'), query: { path } }, options)
  }

  /** All its versions, or the one that is named. */
  async delete(name: string, options?: RequestOptions): Promise<void> {
    await this.#transport.send({ ...objectCall('skills.delete', name), method: 'DELETE', repeatable: false }, options)
  }
}
