// A Next route handler that passes the text of an answer on as it is written, and ends the run where the caller goes away.
import { Errand } from 'errand-client'

export const dynamic = 'force-dynamic'

export async function POST(request: Request): Promise<Response> {
  const { instruction } = (await request.json()) as { instruction?: unknown }
  if (typeof instruction !== 'string') return Response.json({ error: 'instruction is missing' }, { status: 400 })

  const errand = new Errand() // ERRAND_API_KEY of the server: it never comes to a browser
  const stream = errand.interactions.stream(
    { instruction, tools: ['code_execution'] },
    { signal: request.signal, cancelOnAbort: true },
  )
  const text = stream.text()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await text.next()
      if (done) controller.close()
      else controller.enqueue(new TextEncoder().encode(value))
    },
    async cancel() {
      await stream.cancel()
    },
  })
  return new Response(body, { headers: { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-store' } })
}
