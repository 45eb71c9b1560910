// A background run that sends a webhook when it ends, and a receiver for it. Webhooks are sent only to public addresses, unless
// the operator allows a private one: start Errand with ERRAND_EGRESS_ALLOW_PRIVATE=127.0.0.1:8090.
// Set ERRAND_WEBHOOK_SECRET to the output of `script/errand webhooks secret`.
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Errand, verifyWebhook } from 'errand-client'

const secret = process.env.ERRAND_WEBHOOK_SECRET
if (!secret) throw new Error('Set ERRAND_WEBHOOK_SECRET to what `script/errand webhooks secret` prints.')
const errand = new Errand()

const receiver = createServer(async (request, response) => {
  const payload = await text(request) // the raw body: the signature covers these bytes
  try {
    const event = await verifyWebhook({ payload, headers: request.headers, secret })
    response.writeHead(204).end() // respond first, then do the work: a late response causes a retry
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
