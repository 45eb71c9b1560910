import { aiSdkProvider } from './ai-sdk-provider.ts'
import { clampToMinimum, openAiParameters, responsesOptions } from './openai.ts'

/** OpenAI's models on Azure, by the Responses endpoint. `model` is the name of the deployment. */
export const azure = aiSdkProvider({
  name: 'azure',
  telemetryName: 'azure.ai.openai',
  keyEnvs: ['AZURE_API_KEY'],
  resource: {
    variable: 'AZURE_RESOURCE_NAME',
    toBaseUrl: (name) => (isDnsLabel(name) ? `https://${name}.openai.azure.com/openai` : undefined),
  },
  acceptsMedia: true,
  async load({ model, apiKey = '', baseUrl }, fetch) {
    const { createAzure } = await import('@ai-sdk/azure')
    return createAzure({ apiKey, baseURL: baseUrl, fetch }).responses(model)
  },
  parameters: openAiParameters,
  callOptions: (call) => ({ azure: responsesOptions(call) }),
  clampOutputTokens: clampToMinimum,
})

function isDnsLabel(name: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(name)
}
