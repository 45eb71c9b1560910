/**
 * Looks for a model server on loopback. All servers are asked at once, with a short timeout. A server is found if
 * `GET /v1/models` answers as expected: ports such as 8080 and 8000 may belong to anything, such as Errand itself.
 */
import type { Dispatcher } from 'undici'
import { isJsonObject, stringIn } from './json.ts'
import type { LocalServer } from './providers/provider.ts'

export interface FoundServer extends LocalServer {
  /** Its first model for text. */
  readonly model: string
}

export async function findLocalServer(
  servers: readonly LocalServer[],
  timeoutMs: number,
  dispatcher: Dispatcher,
): Promise<FoundServer | undefined> {
  const asked = await Promise.all(
    servers.map(async (server) => {
      const model = await firstModel(server, timeoutMs, dispatcher)
      return model === undefined ? undefined : { ...server, model }
    }),
  )
  return asked.find((server) => server !== undefined)
}

const MAX_LIST_BYTES = 1024 * 1024

async function firstModel(server: LocalServer, timeoutMs: number, dispatcher: Dispatcher): Promise<string | undefined> {
  try {
    const signal = AbortSignal.timeout(timeoutMs)
    const answer = await dispatcher.request({ origin: server.origin, path: '/v1/models', method: 'GET', signal })
    let text = ''
    for await (const chunk of answer.body.setEncoding('utf8')) {
      text += chunk
      // Returning closes the connection.
      if (text.length > MAX_LIST_BYTES) return undefined
    }
    return answer.statusCode === 200 ? modelIn(JSON.parse(text), server.ownedBy) : undefined
  } catch {
    // No server, too slow, or another kind of server.
    return undefined
  }
}

function modelIn(list: unknown, ownedBy: string | undefined): string | undefined {
  if (!isJsonObject(list) || list.object !== 'list' || !Array.isArray(list.data)) return undefined
  return list.data
    .filter(isJsonObject)
    .filter((model) => ownedBy === undefined || stringIn(model, 'owned_by') === ownedBy)
    .map((model) => stringIn(model, 'id'))
    .find((id) => id !== '' && !/embed|rerank|whisper|tts/i.test(id))
}
