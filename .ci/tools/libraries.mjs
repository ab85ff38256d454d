export { createConfig, lintFromString } from '@redocly/openapi-core';
export { cruise } from 'dependency-cruiser';
export { check } from 'recheck';
