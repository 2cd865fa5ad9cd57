import { defineConfig } from 'vite';

export default defineConfig({
  base: './', // wherever the service puts the page
  build: {
    outDir: '../src/nearcast/service/page',
    emptyOutDir: true,
    chunkSizeWarningLimit: 2000, // the map itself is one megabyte
    license: { fileName: 'licenses.md' },
  },
  server: { proxy: { '/v1': 'http://127.0.0.1:8080', '/metrics': 'http://127.0.0.1:8080' } },
});
