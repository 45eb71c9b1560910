import { tool } from '@langchain/core/tools'
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt'
import { ChatOpenAI } from '@langchain/openai'
import { z } from 'zod'

const lookup = tool(async () => 'done', {
  name: 'lookup',
  description: 'Looks up.',
  schema: z.object({ query: z.string() }),
})
const model = new ChatOpenAI({
  model: 'fake',
  apiKey: 'none',
  streaming: true,
  configuration: { baseURL: process.env.BENCH_PROVIDER },
}).bindTools([lookup])

export const graph = new StateGraph(MessagesAnnotation)
  .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
  .addNode('tools', new ToolNode([lookup]))
  .addEdge('__start__', 'model')
  .addConditionalEdges('model', toolsCondition)
  .addEdge('tools', 'model')
  .compile()
