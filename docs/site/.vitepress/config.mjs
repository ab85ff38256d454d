import { resolve } from 'node:path';
import { defineConfig } from 'vitepress';
import { sidebar } from '../sidebar.mjs';

const ROOT = resolve(import.meta.dirname, '../../..');

export default defineConfig({
  title: 'Postrider',
  description: 'A self-hosted mail platform',
  lang: 'en-US',
  srcDir: 'pages',
  cacheDir: 'node_modules/.cache',
  // The API reference is not built by VitePress.
  ignoreDeadLinks: [/^\/api\//],
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: '/favicon.svg' }]],
  markdown: {
    // The sections have the names that they have at GitHub.
    anchor: {
      slugify: (heading) => heading.trim().toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(/\s/g, '-'),
    },
    config: (md) => {
      // Braces are those of our templates, not of Vue.
      for (const name of ['text', 'code_inline']) {
        const rule = md.renderer.rules[name];
        md.renderer.rules[name] = (...args) => rule(...args).replaceAll('{{', '&#123;&#123;');
      }
    },
    // Languages without colors here.
    languageAlias: { caddyfile: 'nginx', haproxy: 'nginx', eml: 'http' },
  },
  themeConfig: {
    search: { provider: 'local' },
    nav: [
      { text: 'API reference', link: '/api/index.html', target: '_self' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
    sidebar: [
      { text: 'Start here', link: '/' },
      ...sidebar(ROOT),
      { text: 'API', items: [{ text: 'API reference', link: '/api/index.html', target: '_self' }] },
    ],
    outline: [2, 3],
    docFooter: { prev: false, next: false },
  },
});
