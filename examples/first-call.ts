// A first call: sends an instruction and prints the answer. `create` waits for the end and survives broken connections and restarts.
import { Errand } from 'errand-client'

const errand = new Errand() // ERRAND_API_KEY and ERRAND_BASE_URL (default http://127.0.0.1:8080)

const { status, output, usage } = await errand.interactions.create({
  instruction: 'Compute the first 10 Fibonacci numbers',
  tools: ['code_execution'],
})
console.log(output)
console.log(`${status}: ${usage?.input_tokens} tokens in, ${usage?.output_tokens} out`)
