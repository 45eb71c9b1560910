/** The console's client, made by script/clients from the server's OpenAPI document of everything that the console calls. */
import { defineConfig } from '@hey-api/openapi-ts'

export default defineConfig({
  input: process.env.ERRAND_OPENAPI ?? 'http://127.0.0.1:8080/console/openapi.json',
  output: process.env.ERRAND_CLIENT ?? 'src/api',
  logs: { level: 'error' },
  parser: {
    patch: {
      // The console calls the server that it came from, so the address of the one that it was made from is left out.
      input: (document) => {
        if ('servers' in document) delete document.servers
      },
    },
  },
  plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
})
