export { cruise } from 'dependency-cruiser';
export { check } from 'recheck';
