"""What a question is: reading a reply, rendering it, judging an answer. Pure: no clock, no SQL, no Matrix library."""
