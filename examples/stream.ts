// Streams a run to a terminal: every step as it happens, and the answer while it is written.
import { Errand } from 'errand-client'

const errand = new Errand()
const stream = errand.interactions.stream({ instruction: 'What is (17 * 23 + 4) / 5?', tools: ['code_execution'] })

for await (const { event, data } of stream) {
  switch (event) {
    case 'reasoning_started':
      console.log(`· ${data.content}`)
      break
    case 'tool_call':
      console.log(`● ${data.name} ${JSON.stringify(data.args)}`)
      break
    case 'tool_result':
      console.log(`→ ${data.output} (${data.duration_ms} ms)\n`)
      break
    case 'partial_output':
      process.stdout.write(data.text)
      break
    case 'completed':
      console.log(`\n\n${data.status}`)
      break
    default: // a newer server may send other events
  }
}
