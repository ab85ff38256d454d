/** The mark: a post-horn. The icon of the site (favicon.svg) has the same shapes. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <g fill="none" stroke-width="2.4" stroke-linecap="round" stroke-linejoin="round">
        <path d="M5.5 12.5h11a5.75 5.75 0 1 1-5.75 5.75A5.75 5.75 0 0 1 16.5 12.5H20" />
        <path class="bell" d="M20 12.5c2.8 0 4.6-1.6 6.5-4.5v9c-1.9-2.9-3.7-4.5-6.5-4.5z" />
        <path d="M5.5 10.7v3.6" />
      </g>
    </svg>
  );
}
