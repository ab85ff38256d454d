/**
 * The library of the ACME protocol, in a separate module that `authority.ts` imports when it is needed. In the built
 * program `import()` of a CommonJS library has the library as its default export only; a static import works everywhere.
 */
export * as acme from 'acme-client';
