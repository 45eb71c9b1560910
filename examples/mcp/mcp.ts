// A run with the tools of an MCP server that the operator registered as a command (see examples/README.md). A public server needs
// no registration: { name: 'tracker', url: 'https://mcp.example.com/mcp', authentication: … }.
import { Errand } from 'errand-client'

const errand = new Errand()
const stream = errand.interactions.stream({
  instruction: 'What does "epoch" mean to Errand? Look it up.',
  mcp: [{ name: 'glossary' }],
})
for await (const { event, data } of stream) {
  if (event === 'warning') console.log(`warning: ${data.message}`)
  if (event === 'tool_call') console.log(`● ${data.name} ${JSON.stringify(data.args)}`)
  if (event === 'tool_result') console.log(`→ ${data.output}`)
  if (event === 'partial_output') process.stdout.write(data.text)
}
console.log()
