// A background run whose end is told by a webhook, and the server that hears it. Webhooks go to public addresses alone
// unless the operator opens a private one; start Errand for this with ERRAND_EGRESS_ALLOW_PRIVATE=127.0.0.1:8090.
// ERRAND_WEBHOOK_SECRET: what `script/errand webhooks secret` prints.
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Errand, verifyWebhook } from 'errand-client'

const secret = process.env.ERRAND_WEBHOOK_SECRET
if (!secret) throw new Error('Set ERRAND_WEBHOOK_SECRET to what `script/errand webhooks secret` prints.')
const errand = new Errand()

const receiver = createServer(async (request, response) => {
  const payload = await text(request) // as it came: the signature is over these bytes
  try {
    const event = await verifyWebhook({ payload, headers: request.headers, secret })
    response.writeHead(204).end() // answer first, work afterwards: an answer that is late is tried again
    const { output } = await errand.interactions.retrieve(event.data.interactionId)
    console.log(`${event.type}: ${output}`)
    receiver.close()
  } catch (error) {
    response.writeHead(400).end()
    console.error(error)
  }
})

receiver.listen(8090, '127.0.0.1', async () => {
  const { interactionId } = await errand.interactions.start({
    instruction: 'Compute the first 10 Fibonacci numbers',
    tools: ['code_execution'],
    webhook: { url: 'http://127.0.0.1:8090/errand' },
  })
  console.log(`started ${interactionId}`)
})
