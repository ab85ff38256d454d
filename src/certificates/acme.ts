/**
 * The library of the ACME protocol, as a module of its own that `authority.ts` imports when it is needed. In the built
 * program `import()` of a CommonJS library has the library as its default export only; a static import works everywhere.
 */
export * as acme from 'acme-client';
